#include "resilient_ccl/comm/planned_program.h"

#include <vector>

#include "resilient_ccl/comm/completions.h"
#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::comm {

Result<PlannedProgram> planProgram(const PlanSettings& settings, const plan::HealthVector& health,
                                   const PlanKey& key, int rank) {
  PlannedProgram result;
  ASSIGN_OR_RETURN(result.plan, plan::choosePlan({.health = health,
                                                  .elements = key.elements,
                                                  .elementSize = key.elementSize,
                                                  .ranksPerNode = settings.ranksPerNode,
                                                  .algorithm = settings.algorithm},
                                                 settings.link));
  schedule::ScheduleRequest request{.ranks = static_cast<int>(health.size()),
                                    .elements = key.elements,
                                    .segments = result.plan.segments,
                                    .window = schedule::executionWindow(settings.rails),
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
