#include "harness/cli/dry_run.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/printable.h"
#include "harness/cli/estimate_words.h"
#include "harness/control/time_left.h"
#include "harness/record/run_order.h"
#include "harness/scenario/cluster_reader.h"
#include "harness/scenario/fault_list.h"
#include "harness/scenario/fault_process.h"
#include "harness/scenario/json.h"
#include "reports/headline.h"
#include "reports/result.h"

namespace faultline::cli {
namespace {

std::string durationText(const run::TimeEstimate& estimate, std::size_t runs) {
  const std::string whichEnd =
      runs == 1 ? std::string("the run is") : fmt::format("each of {} runs is", runs);
  const std::string at_most = reports::shortTime(toMilliseconds(estimate.atMost));
  if (!estimate.likely) {
    return fmt::format(
        "takes: nobody knows before the first run, as the programs are not ours; at most {}, when "
        "{} ended at its time limit\n",
        at_most, whichEnd);
  }
  return fmt::format(
      "takes: about {}, estimated from the scenario's times and rates; a busy machine needs "
      "longer, "
      "at most {}, when {} ended at its deadline\n",
      reports::shortTime(toMilliseconds(*estimate.likely)), at_most, whichEnd);
}

}  // namespace

std::string planText(const scenario::Scenario& scenario) {
  std::string text =
      fmt::format("{}: {} nodes x {}, {} rank(s) per node\n", scenario.name, scenario.cluster.nodes,
                  scenario::railsInWords(scenario.cluster), scenario.cluster.ranksPerNode);
  if (const auto& serving = scenario.workload.serving; serving && !serving->traceTold.empty()) {
    text +=
        fmt::format("trace {}: {}\n", printable(serving->traceFile), printable(serving->traceTold));
  }
  for (const scenario::FaultProcess& process : scenario.processes) {
    text += fmt::format("fault process: {}\n", scenario::inWords(process, scenario.cluster));
  }
  int number = 0;
  for (const scenario::Fault& fault : scenario::allFaults(scenario)) {
    text += fmt::format("fault {}: {}\n", number++, scenario::inWords(fault));
  }
  number = 0;
  const std::vector<run::PlannedRun> plan = run::orderRuns(scenario, scenario.seed);
  for (const run::PlannedRun& planned : plan) {
    text += fmt::format("run {}: block {}, {} ({})\n", ++number, planned.block + 1,
                        planned.strategy->name, reports::nameOf(planned.arm));
  }
  text += fmt::format("{}\n", run::inWords(run::estimateJob(scenario)));
  return text + durationText(run::estimateOf(scenario, plan), plan.size());
}

Json planJson(const scenario::Scenario& scenario) {
  Json runs = Json::array();
  const std::vector<run::PlannedRun> plan = run::orderRuns(scenario, scenario.seed);
  for (const run::PlannedRun& planned : plan) {
    runs.push_back({{"block", planned.block},
                    {"strategy", planned.strategy->name},
                    {"arm", reports::nameOf(planned.arm)}});
  }
  Json faults = Json::array();
  for (const scenario::Fault& fault : scenario::allFaults(scenario)) {
    faults.push_back(scenario::toJson(fault));
  }
  const run::TimeEstimate estimate = run::estimateOf(scenario, plan);
  return {{"scenario", scenario::toJson(scenario)},
          {"faults", std::move(faults)},
          {"runs", std::move(runs)},
          {"estimate", estimateJson(scenario)},
          {"time",
           {{"likely_s", estimate.likely ? Json(toSeconds(*estimate.likely)) : Json()},
            {"at_most_s", toSeconds(estimate.atMost)}}}};
}

}  // namespace faultline::cli
