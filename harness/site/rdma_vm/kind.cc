#include "harness/site/rdma_vm/kind.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text.h"
#include "harness/site/rdma_vm/cluster.h"
#include "harness/site/rdma_vm/guest_files.h"
#include "harness/site/rdma_vm/vm_plan.h"
#include "injector/faults/registry.h"

namespace faultline::rdma_vm {
namespace {

constexpr const char* kHow = "how";
constexpr std::string_view kCarrier = "carrier";
constexpr const char* kRate = "rate";
constexpr const char* kTrafficClass = "traffic_class";
constexpr std::string_view kAllClasses = "all";

// qemu besides the memory of its guest.
constexpr Bytes kGuestOverhead = 96 << 20;
constexpr std::int64_t kGuestThreads = 6;
constexpr std::int64_t kGuestDescriptors = 64;
constexpr std::int64_t kControllerPerGuest = 4;  // its agent, its monitor, its console, its memory

bool isPossible(const injector::FaultKind& kind) {
  return kind.outside != injector::Outside::kNot || injector::isOfQueuePairs(kind.name) ||
         injector::isOfRdmaDevices(kind.name);
}

/// What the NIC behind a device in software cannot do.
site::Refusal refusalOfVirtualNic(const injector::FaultKind& kind,
                                  const injector::FaultParameters& parameters) {
  if (parameters.has(kRate) && std::holds_alternative<injector::Percent>(parameters.value(kRate))) {
    return {kRate, fmt::format("rate: {} of a percentage: a guest's NIC does not tell its speed. "
                               "Write a rate, like 1Mbit",
                               kind.name)};
  }
  if (parameters.has(kTrafficClass) && parameters.get<std::string>(kTrafficClass) != kAllClasses) {
    return {kTrafficClass,
            "traffic_class: only adapters have such classes, and guests have none: leave it out"};
  }
  return {};
}

site::Refusal refusal(const injector::FaultKind& kind,
                      const injector::FaultParameters& parameters) {
  if (injector::isOfRdmaDevices(kind.name)) return refusalOfVirtualNic(kind, parameters);
  if (!isPossible(kind)) {
    std::vector<std::string_view> possible;
    for (const injector::FaultKind& row : injector::faultKinds()) {
      if (isPossible(row)) possible.push_back(row.name);
    }
    return {std::string(site::kRefusedKind),
            fmt::format("{}: a cluster of kind {} has only {}", kind.name, kKind.name,
                        join(possible, ", "))};
  }
  if (parameters.has(kHow) && parameters.get<std::string>(kHow) != kCarrier) {
    return {kHow, fmt::format("how: a cluster of kind {} pulls the cable outside of the guest: "
                              "write '{}'; what switches the port off inside it is a fault of RDMA "
                              "devices ('faultline list faults')",
                              kKind.name, kCarrier)};
  }
  return {};
}

site::Footprint footprint(const site::ClusterSpec& spec) {
  VmSpec guests;
  guests.hosts = spec.nodes;
  guests.rails = spec.rails;
  const std::int64_t hosts = guests.hosts;
  site::Footprint taken = site::kController;
  taken.processes += 1 + hosts;  // with what holds the guests
  taken.threads += 1 + hosts * kGuestThreads;
  taken.descriptors += hosts * (guests.nics() + kControllerPerGuest);
  taken.files = taken.descriptors + hosts * kGuestDescriptors;
  taken.processNamespaces = 1;
  taken.memory += hosts * ((Bytes{guests.memoryMiB} << 20) + kGuestOverhead);
  return taken;
}

std::vector<site::MachineCheck> checkMachine() {
  std::vector<site::MachineCheck> checks;
  for (const Need& need : laboratoryNeeds()) {
    checks.push_back({"soft-RoCE in guests of qemu (not needed for other clusters)", need.name,
                      need.ok, false, need.found,
                      fmt::format("clusters of kind {}, and faultline lab", kKind.name),
                      "no real verbs here, unless the machine has RDMA devices", need.remedy});
  }
  return checks;
}

Result<std::unique_ptr<site::Cluster>> make(const site::ClusterSpec& spec) {
  VmSpec own;
  own.hosts = spec.nodes;
  own.rails = spec.rails;
  own.sharedFolder = spec.folder;
  RETURN_IF_ERROR(own.check());
  return std::unique_ptr<site::Cluster>(std::make_unique<Cluster>(own));
}

}  // namespace

constinit const site::Kind kKind{.name = "rdma_vm",
                                 .summary =
                                     "a guest of qemu with an RDMA device (rxe) on each "
                                     "rail per node, for programs that are not ours",
                                 .most = VmSpec::kMost,
                                 .rdmaDevices = true,
                                 .ownKernels = true,
                                 .refusal = refusal,
                                 .footprint = footprint,
                                 .checkMachine = checkMachine,
                                 .make = make};

}  // namespace faultline::rdma_vm
