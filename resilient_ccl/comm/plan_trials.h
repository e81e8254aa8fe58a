#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "resilient_ccl/comm/agreement.h"
#include "resilient_ccl/plan/candidate_trial.h"

namespace faultline::comm {

/// What the coordinator of a communicator finds out about its sizes under one health, by how long
/// their calls take: a plan::CandidateTrial for each. Pure.
class PlanTrials {
 public:
  /// So many sizes, the first ones, are tried; others keep what the model says.
  static constexpr std::size_t kMostSizes = 64;

  /// A call by a plan begins on this rank, and ends. What `plan` was chosen from says which
  /// candidates there are.
  void began(std::uint64_t operation, const PlanKey& key, const plan::Plan& plan, Choice choice,
             TimePoint now);
  void ended(std::uint64_t operation, TimePoint now);

  /// What a size should use from now on and, by what has been agreed upon, does not.
  struct Wish {
    PlanKey key;
    Chosen chosen;
  };
  std::optional<Wish> next(const Agreement& agreement) const;

  /// The health is another one; `whole`: all ports were whole under the one before. Calls of that
  /// are the best measure of the bandwidth: one at the start is short, and off by a tenth at times,
  /// so that candidates at their bound seemed far from it, and all others were tried.
  void forget(bool whole);

 private:
  struct Size {
    std::vector<Choice> candidates;  // the first is what the model says: Choice{}
    plan::CandidateTrial trial;

    Chosen wanted() const { return {candidates[trial.wanted()], !trial.settled()}; }
  };
  struct Open {
    PlanKey key;
    Choice choice;
    TimePoint began{};
  };

  /// What is further off than this is so for another reason than the measurement.
  static constexpr double kMostOff = 1.25;

  std::map<PlanKey, Size> sizes_;
  double overModel_ = 1;  // what calls take over what the model says, where bandwidth decides
  std::map<std::uint64_t, Open> open_;  // by operation
};

}  // namespace faultline::comm
