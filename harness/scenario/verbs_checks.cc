#include "harness/scenario/verbs_checks.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "harness/scenario/fault_kinds.h"
#include "harness/scenario/record_reader.h"
#include "harness/scenario/workload_kind.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
void checkVerbs(const Scenario& scenario, const Node& root, Findings& findings) {
  if (!findings.usable({"workload", "workload.kind", "workload.command", "workload.command.run",
                        "workload.command.env", "strategies"})) {
    return;
  }
  const WorkloadKind& workload = *scenario.workload.kind;
  // Clusters without ranks of ours refuse them, whatever the fault.
  if (workload.runsRanks && !scenario.cluster.kind->runsRanks) return;
  if (workload.mayHaveShim != nullptr && workload.mayHaveShim(scenario)) return;
  forEachFaultKind(scenario, [&](const std::string& kind, const injector::FaultParameters&,
                                 const std::string& path) {
    if (!injector::isOfQueuePairs(kind) || !findings.usable({path})) return;
    findings.add(
        locate(root, path + ".kind"),
        !workload.runsRanks
            ? fmt::format("{}: no process of this job has the verbs shim, which brings it: "
                          "write 'env: {{LD_PRELOAD: \"{{verbs_shim}}\"}}' under "
                          "'workload.command' (NCCL_IBVERBS_LIB for NCCL, MSCCLPP_IBV_SO for "
                          "MSCCL++)",
                          kind)
            : fmt::format("{}: strikes queue pairs of programs that are not ours, and ranks of "
                          "a workload of kind {} have none: write 'workload: {{kind: {}}}' "
                          "with a program that uses RDMA, or choose another kind of fault",
                          kind, workload.name, workloadWith(&WorkloadKind::runsRanks, false)));
  });
}

}  // namespace faultline::scenario
