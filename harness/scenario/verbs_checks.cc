#include "harness/scenario/verbs_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "harness/scenario/fault_kinds.h"
#include "harness/scenario/record_reader.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

// How a program gets the shim (docs/verbs.md): by its path, or by a variable that loads a library
// whatever its path is called.
constexpr std::array<std::string_view, 5> kSignsOfShim{
    "{verbs_shim}", "libfaultline-verbs", "LD_PRELOAD", "NCCL_IBVERBS_LIB", "MSCCLPP_IBV_SO"};

bool showsShim(std::string_view text) {
  return std::ranges::any_of(kSignsOfShim, [&](std::string_view sign) {
    return text.find(sign) != std::string_view::npos;
  });
}

bool anyShowsShim(const std::map<std::string, std::string>& environment) {
  return std::ranges::any_of(environment, [](const auto& variable) {
    return showsShim(variable.first) || showsShim(variable.second);
  });
}

/// Whether a process of a program that is not ours can have the shim.
bool canHaveShim(const Scenario& scenario) {
  const command::Command& command = scenario.workload.command;
  return std::ranges::any_of(command.run, showsShim) || anyShowsShim(command.environment) ||
         std::ranges::any_of(scenario.strategies, [](const Strategy& strategy) {
           return anyShowsShim(strategy.environment);
         });
}

}  // namespace

void checkVerbs(const Scenario& scenario, const Node& root, Findings& findings) {
  if (!findings.usable({"workload", "workload.kind", "workload.command", "workload.command.run",
                        "workload.command.env", "strategies"})) {
    return;
  }
  const bool foreign = scenario.workload.isForeign();
  if (foreign ? canHaveShim(scenario) : !scenario.cluster.kind->runsRanks) {
    return;  // guests refuse ranks of ours, whatever the fault
  }
  forEachFaultKind(scenario, [&](const std::string& kind, const injector::FaultParameters&,
                                 const std::string& path) {
    if (!injector::isOfQueuePairs(kind) || !findings.usable({path})) return;
    findings.add(
        locate(root, path + ".kind"),
        foreign ? fmt::format("{}: no process of this job has the verbs shim, which brings it: "
                              "write 'env: {{LD_PRELOAD: \"{{verbs_shim}}\"}}' under "
                              "'workload.command' (NCCL_IBVERBS_LIB for NCCL, MSCCLPP_IBV_SO for "
                              "MSCCL++)",
                              kind)
                : fmt::format("{}: strikes queue pairs of programs that are not ours, and ranks of "
                              "a workload of kind {} have none: write 'workload: {{kind: {}}}' "
                              "with a program that uses RDMA, or choose another kind of fault",
                              kind, scenario.workload.kind, Workload::kCommandKind));
  });
}

}  // namespace faultline::scenario
