#include "resilient_ccl/comm/planned_program.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "resilient_ccl/comm/completions.h"
#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::comm {
namespace {

/// OptCC is for ports that differ; where none does its planner takes what is predicted to be
/// fastest of its schedules and the ring (docs/planner.md).
constexpr std::string_view kOptcc = "optcc";

}  // namespace

Choice choiceOf(const plan::Candidate& candidate) {
  const auto all = schedule::algorithms();
  const auto found = std::ranges::find(all, candidate.algorithm, &schedule::Algorithm::name);
  return {static_cast<std::uint16_t>(found - all.begin()),
          static_cast<std::uint16_t>(candidate.segments)};
}

Result<PlannedProgram> planProgram(const PlanSettings& settings, const plan::HealthVector& health,
                                   const PlanKey& key, Choice choice, int rank) {
  plan::PlanRequest wanted{.health = health,
                           .elements = key.elements,
                           .elementSize = key.elementSize,
                           .ranksPerNode = settings.ranksPerNode,
                           .rails = settings.rails,
                           .collective = key.collective,
                           .root = key.root,
                           .slice = settings.slice};
  const bool reducesAll = key.collective == schedule::Collective::kAllReduce;
  if (reducesAll) {
    wanted.algorithm = settings.algorithm;
    wanted.ringWhereEqual = settings.algorithm == kOptcc;
  } else {
    wanted.segments = settings.segments;
  }
  if (choice.segments > 0) {
    const auto all = schedule::algorithms();
    if (choice.algorithm >= all.size()) {
      return errorf(Code::kInvalidArgument, "there is no algorithm {}, only {}", choice.algorithm,
                    all.size());
    }
    wanted.algorithm = all[choice.algorithm].name;
    wanted.segments = choice.segments;
    wanted.ringWhereEqual = false;
  }
  PlannedProgram result;
  ASSIGN_OR_RETURN(result.plan, plan::choosePlan(wanted, settings.link));
  const auto ranks = static_cast<int>(health.size());
  schedule::ScheduleRequest request{
      .ranks = ranks,
      .elements = key.elements,
      .segments = result.plan.segments,
      .window = reducesAll
                    ? schedule::allReduceWindow(settings.rails, ranks / settings.ranksPerNode - 1)
                    : schedule::executionWindow(settings.rails),
      .root = key.root,
      .ranksPerNode = settings.ranksPerNode};
  for (const plan::Health& port : health) {
    request.bandwidths.send.push_back(plan::fraction(port.send));
    request.bandwidths.receive.push_back(plan::fraction(port.receive));
  }
  ASSIGN_OR_RETURN(const auto schedule, schedule::makeSchedule(result.plan.algorithm, request));
  std::vector<std::vector<bool>> completes;
  if (key.average) {
    ASSIGN_OR_RETURN(completes, findCompletions(*schedule, rank));
  }
  result.program = Program::compile(*schedule, rank, completes);
  return result;
}

}  // namespace faultline::comm
