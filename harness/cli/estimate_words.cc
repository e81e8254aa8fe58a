#include "harness/cli/estimate_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace faultline::cli {

std::vector<std::string> warningsOf(const scenario::Scenario& scenario,
                                    const run::Capacity& capacity) {
  std::vector<std::string> warnings;
  for (const std::string& missing : run::shortages(run::estimateJob(scenario), capacity)) {
    warnings.push_back(fmt::format("{}: this machine cannot hold it: {}", scenario.name, missing));
  }
  for (const std::string& warning : run::tooFast(scenario, capacity)) {
    warnings.push_back(fmt::format("{}: warning: {}", scenario.name, warning));
  }
  return warnings;
}

Status fits(const std::vector<scenario::Scenario>& scenarios, const run::Capacity& capacity) {
  for (const scenario::Scenario& scenario : scenarios) {
    const std::vector<std::string> missing = run::shortages(run::estimateJob(scenario), capacity);
    if (missing.empty()) continue;
    return errorf(Code::kUnavailable,
                  "this machine cannot hold {}: {}; make the job smaller (cluster: nodes, "
                  "ranks_per_node, rails; sizes of the workload), raise the limit, or try all the "
                  "same with --force",
                  scenario.name, fmt::join(missing, "; "));
  }
  return okStatus();
}

Json estimateJson(const scenario::Scenario& scenario) {
  const run::JobEstimate estimate = run::estimateJob(scenario);
  return {{"processes", estimate.processes},
          {"threads", estimate.threads},
          {"memory_bytes", estimate.memory},
          {"descriptors", estimate.files},
          {"descriptors_of_one_process", estimate.descriptors},
          {"network_namespaces", estimate.networkNamespaces},
          {"process_namespaces", estimate.processNamespaces},
          {"connections", estimate.connections},
          {"programs_besides", estimate.foreign}};
}

}  // namespace faultline::cli
