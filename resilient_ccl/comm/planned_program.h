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

/// One of the candidates of a plan, as ranks tell it to each other.
struct Choice {
  std::uint16_t algorithm = 0;  ///< its place in schedule::algorithms()
  std::uint16_t segments = 0;   ///< 0: algorithm and segments are what the model says is cheapest

  auto operator<=>(const Choice&) const = default;
};
Choice choiceOf(const plan::Candidate& candidate);

struct PlannedProgram {
  plan::Plan plan;
  std::shared_ptr<const Program> program;
};

/// Chooses the plan, or makes that of `choice`, and compiles what `rank` does of it. Pure, and
/// slow: up to seconds. kInvalidArgument when there is no such choice.
Result<PlannedProgram> planProgram(const PlanSettings& settings, const plan::HealthVector& health,
                                   const PlanKey& key, Choice choice, int rank);

}  // namespace faultline::comm
