#include "harness/scenario/rdma_vm_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "harness/baseline/strategy_table.h"

namespace faultline::scenario {
namespace {

// What the laboratory can do to a rail (rdma_vm/laboratory_faults.h), and what this machine's
// memory and processors can be expected to carry (rdma_vm/vm_plan.h).
constexpr std::array<std::string_view, 2> kFaults{"port_down", "blackhole"};
constexpr int kMostNodes = 8;
constexpr int kMostRails = 8;
constexpr std::string_view kHow = "how";
constexpr std::string_view kCarrier = "carrier";

class RdmaVmChecker {
 public:
  RdmaVmChecker(const Scenario& scenario, const Node& root, Findings& findings)
      : scenario_(scenario), root_(root), findings_(findings) {}

  void check() {
    checkCluster();
    if (!scenario_.workload.isForeign()) {
      fail("workload.kind",
           fmt::format("kind: a cluster of kind rdma_vm runs programs that are not ours: write "
                       "'{}', or 'cluster: {{kind: netns}}'",
                       Workload::kCommandKind));
    }
    for (std::size_t i = 0; i < scenario_.strategies.size(); ++i) {
      if (scenario_.strategies[i].kind() != baseline::kNccl) continue;
      fail(fmt::format("strategies.{}", i),
           fmt::format("{}: NCCL needs GPUs, and guests of a cluster of kind rdma_vm have none",
                       baseline::kNccl));
    }
    for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
      checkFault(scenario_.faults[i], fmt::format("faults.{}", i));
    }
    for (std::size_t i = 0; i < scenario_.sequences.size(); ++i) {
      const std::vector<Fault>& faults = scenario_.sequences[i].faults;
      for (std::size_t j = 0; j < faults.size(); ++j) {
        checkFault(faults[j], fmt::format("sequences.{}.faults.{}", i, j));
      }
    }
    for (std::size_t i = 0; i < scenario_.processes.size(); ++i) {
      for (const FaultProcess::Kind& kind : scenario_.processes[i].kinds) {
        checkKind(kind.name, kind.parameters, fmt::format("fault_processes.{}", i));
      }
    }
  }

 private:
  void fail(std::string_view path, std::string message) {
    findings_.add(locate(root_, path), std::move(message));
  }

  void checkCluster() {
    const Node* const cluster = root_.find("cluster");
    const Node* const rate = cluster == nullptr ? nullptr : cluster->find("rail_rate");
    if (rate != nullptr) {
      findings_.add(rate->where,
                    "rail_rate: rails of a cluster of kind rdma_vm are not shaped: they carry what "
                    "the emulation can; remove it");
    }
    if (findings_.usable({"cluster.nodes"}) && scenario_.cluster.nodes > kMostNodes) {
      fail("cluster.nodes", fmt::format("nodes: a cluster of kind rdma_vm has {} at most, each "
                                        "with memory of its own, not {}",
                                        kMostNodes, scenario_.cluster.nodes));
    }
    if (findings_.usable({"cluster.rails"}) && scenario_.cluster.rails > kMostRails) {
      fail("cluster.rails", fmt::format("rails: a cluster of kind rdma_vm has {} at most, not {}",
                                        kMostRails, scenario_.cluster.rails));
    }
  }

  void checkFault(const Fault& fault, const std::string& path) {
    if (!findings_.usable({path})) return;
    checkKind(fault.kind, fault.parameters, path);
    if (!fault.target || fault.target->part == Part::kProcesses) return;  // refused by its kind
    if (fault.target->part == Part::kManagement) {
      fail(path + ".target",
           "target: the management network of a cluster of kind rdma_vm cannot be struck: write "
           "'rail'");
    }
  }

  void checkKind(const std::string& kind, const injector::FaultParameters& parameters,
                 const std::string& path) {
    if (std::ranges::count(kFaults, kind) == 0) {
      fail(path + ".kind", fmt::format("{}: a cluster of kind rdma_vm has only {} and {}", kind,
                                       kFaults[0], kFaults[1]));
    } else if (parameters.has(kHow) && parameters.get<std::string>(kHow) != kCarrier) {
      fail(path + ".how", fmt::format("how: a cluster of kind rdma_vm pulls the cable outside of "
                                      "the guest: write '{}'",
                                      kCarrier));
    }
  }

  const Scenario& scenario_;
  const Node& root_;
  Findings& findings_;
};

}  // namespace

void checkRdmaVm(const Scenario& scenario, const Node& root, Findings& findings) {
  if (scenario.cluster.kind != ClusterKind::kRdmaVm || !findings.usable({"cluster.kind"})) return;
  RdmaVmChecker(scenario, root, findings).check();
}

}  // namespace faultline::scenario
