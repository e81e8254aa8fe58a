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
  std::string algorithm;  ///< to plan an AllReduce for; empty: the cheapest
  int ranksPerNode = 1;
  int rails = 1;
  int segments = 1;         ///< of collectives besides AllReduce (plan::PlanRequest)
  Bytes slice = 256 << 10;  ///< CommunicatorOptions::sliceBytes
};

/// What a plan of a collective, and its program, are made for.
struct PlanKey {
  std::int64_t elements = 0;  ///< of data per rank, as schedules count them
  Bytes elementSize = 4;
  bool average = false;
  schedule::Collective collective = schedule::Collective::kAllReduce;
  int root = 0;

  auto operator<=>(const PlanKey&) const = default;
  /// Averages or not: it has the same plan.
  PlanKey ofPlan() const {
    PlanKey plan = *this;
    plan.average = false;
    return plan;
  }
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
