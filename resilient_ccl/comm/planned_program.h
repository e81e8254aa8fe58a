#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/units.h"
#include "resilient_ccl/comm/program.h"
#include "resilient_ccl/plan/planner.h"

namespace faultline::comm {

/// What a communicator plans from, besides health and size; equal on all its ranks.
struct PlanSettings {
  plan::LinkModel link;
  std::string algorithm;  ///< to plan for; empty: the cheapest
  int ranksPerNode = 1;
  int rails = 1;
};

/// What a plan of an AllReduce, and its program, are made for.
struct PlanKey {
  std::int64_t elements = 0;
  Bytes elementSize = 4;
  bool average = false;

  auto operator<=>(const PlanKey&) const = default;
  /// Averages or not: it has the same plan.
  PlanKey ofPlan() const { return {elements, elementSize, false}; }
};

struct PlannedProgram {
  plan::Plan plan;
  std::shared_ptr<const Program> program;
};

/// Chooses the plan and compiles what `rank` does of it. Pure, and slow: up to seconds.
Result<PlannedProgram> planProgram(const PlanSettings& settings, const plan::HealthVector& health,
                                   const PlanKey& key, int rank);

}  // namespace faultline::comm
