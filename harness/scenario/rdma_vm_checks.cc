#include "harness/scenario/rdma_vm_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/fault_kinds.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

// What this machine's memory and processors can be expected to carry (rdma_vm/vm_plan.h).
constexpr int kMostGuests = 8;
constexpr int kMostGuestRails = 8;
constexpr std::string_view kHow = "how";
constexpr std::string_view kCarrier = "carrier";
constexpr std::string_view kRate = "rate";
constexpr std::string_view kTrafficClass = "traffic_class";
constexpr std::string_view kAllClasses = "all";

bool isOfGuests(std::string_view name) {
  const injector::FaultKind* const kind = injector::findFaultKind(name);
  return kind != nullptr && (kind->outside != injector::Outside::kNot ||
                             injector::isOfQueuePairs(name) || injector::isOfRdmaDevices(name));
}

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
      checkTarget(scenario_.faults[i], fmt::format("faults.{}", i));
    }
    for (std::size_t i = 0; i < scenario_.sequences.size(); ++i) {
      const std::vector<Fault>& faults = scenario_.sequences[i].faults;
      for (std::size_t j = 0; j < faults.size(); ++j) {
        checkTarget(faults[j], fmt::format("sequences.{}.faults.{}", i, j));
      }
    }
    forEachFaultKind(scenario_,
                     [this](const std::string& kind, const injector::FaultParameters& parameters,
                            const std::string& path) { checkKind(kind, parameters, path); });
  }

  void checkOther() {
    forEachFaultKind(scenario_, [this](const std::string& kind, const injector::FaultParameters&,
                                       const std::string& path) {
      if (!injector::isOfRdmaDevices(kind) || !findings_.usable({path})) return;
      fail(path + ".kind",
           fmt::format("{}: nodes of this cluster have no RDMA devices: write 'cluster: {{kind: "
                       "rdma_vm}}', or strike one of this machine by 'faultline inject'",
                       kind));
    });
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
    const Node* const algorithm =
        cluster == nullptr ? nullptr : cluster->find("congestion_control");
    if (algorithm != nullptr) {
      findings_.add(
          algorithm->where,
          "congestion_control: nodes of a cluster of kind rdma_vm have their own kernel's; "
          "remove it");
    }
    if (findings_.usable({"cluster.nodes"}) && scenario_.cluster.nodes > kMostGuests) {
      fail("cluster.nodes", fmt::format("nodes: a cluster of kind rdma_vm has {} at most, each "
                                        "with memory of its own, not {}",
                                        kMostGuests, scenario_.cluster.nodes));
    }
    if (findings_.usable({"cluster.rails"}) && scenario_.cluster.rails > kMostGuestRails) {
      fail("cluster.rails", fmt::format("rails: a cluster of kind rdma_vm has {} at most, not {}",
                                        kMostGuestRails, scenario_.cluster.rails));
    }
  }

  void checkTarget(const Fault& fault, const std::string& path) {
    if (!findings_.usable({path}) || !fault.target) return;
    if (fault.target->part != Part::kManagement) return;
    fail(path + ".target",
         "target: the management network of a cluster of kind rdma_vm cannot be struck: write "
         "'rail'");
  }

  void checkKind(const std::string& kind, const injector::FaultParameters& parameters,
                 const std::string& path) {
    if (!findings_.usable({path})) return;
    if (injector::isOfRdmaDevices(kind)) {
      checkVirtualNic(kind, parameters, path);
    } else if (!isOfGuests(kind)) {
      std::vector<std::string_view> possible;
      for (const injector::FaultKind& row : injector::faultKinds()) {
        if (isOfGuests(row.name)) possible.push_back(row.name);
      }
      fail(path + ".kind",
           fmt::format("{}: a cluster of kind rdma_vm has only {}", kind, join(possible, ", ")));
    } else if (parameters.has(kHow) && parameters.get<std::string>(kHow) != kCarrier) {
      fail(path + ".how", fmt::format("how: a cluster of kind rdma_vm pulls the cable outside of "
                                      "the guest: write '{}'; to switch the port off inside it is "
                                      "the kind rdma_port_down",
                                      kCarrier));
    }
  }

  /// What the NIC behind a device in software cannot do.
  void checkVirtualNic(const std::string& kind, const injector::FaultParameters& parameters,
                       const std::string& path) {
    if (parameters.has(kRate) &&
        std::holds_alternative<injector::Percent>(parameters.value(kRate))) {
      fail(path + ".rate", fmt::format("rate: {} of a percentage: a guest's NIC does not tell its "
                                       "speed. Write a rate, like 1Mbit",
                                       kind));
    }
    if (parameters.has(kTrafficClass) &&
        parameters.get<std::string>(kTrafficClass) != kAllClasses) {
      fail(path + ".traffic_class",
           "traffic_class: only adapters have such classes, and guests have none: leave it out");
    }
  }

  const Scenario& scenario_;
  const Node& root_;
  Findings& findings_;
};

}  // namespace

void checkRdmaVm(const Scenario& scenario, const Node& root, Findings& findings) {
  if (!findings.usable({"cluster.kind"})) return;
  RdmaVmChecker checker(scenario, root, findings);
  if (scenario.cluster.kind == ClusterKind::kRdmaVm) {
    checker.check();
  } else {
    checker.checkOther();
  }
}

}  // namespace faultline::scenario
