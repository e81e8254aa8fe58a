#pragma once

#include <cstdint>
#include <map>

#include "resilient_ccl/comm/planned_program.h"
#include "resilient_ccl/plan/health.h"

namespace faultline::comm {

/// What a size uses instead of what the model says.
struct Chosen {
  Choice choice;
  bool tried = false;  ///< for a few calls only, to see how long they take

  bool operator==(const Chosen&) const = default;
};

/// What all ranks of a communicator plan from, from one operation on.
struct Agreement {
  plan::HealthVector health;
  std::uint64_t healthHash = 0;            ///< another one for each change of it
  std::uint64_t epoch = 0;                 ///< changes of health before it
  std::map<PlanKey, Chosen> choices = {};  ///< by size, averaging or not

  const Chosen* chosen(const PlanKey& key) const {
    const auto found = choices.find(key.ofPlan());
    return found == choices.end() ? nullptr : &found->second;
  }
  Choice choice(const PlanKey& key) const {
    const Chosen* const found = chosen(key);
    return found == nullptr ? Choice{} : found->choice;
  }
};

}  // namespace faultline::comm
