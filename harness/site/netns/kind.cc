#include "harness/site/netns/kind.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>

#include "harness/site/netns/cluster.h"
#include "harness/site/netns/machine_checks.h"
#include "injector/faults/registry.h"

namespace faultline::netns {
namespace {

// A NIC: a veth pair, its queues and its port at the switch. A namespace has tables of its own.
constexpr Bytes kNicMemory = 64 << 10;
constexpr Bytes kNamespaceMemory = 256 << 10;
// The namespace and sockets into it; its agent's end, its lifeline, its messages.
constexpr std::int64_t kControllerPerNode = 6;
// An agent that has started nothing yet; its main thread and its lifeline.
constexpr Bytes kAgentMemory = 3 << 20;
constexpr std::int64_t kAgentThreads = 2;
constexpr std::int64_t kAgentDescriptors = 7;

site::Refusal refusal(const injector::FaultKind& kind,
                      const injector::FaultParameters& /*parameters*/) {
  if (!injector::isOfRdmaDevices(kind.name)) return {};
  return {std::string(site::kRefusedKind),
          fmt::format("{}: nodes of this cluster have no RDMA devices; 'faultline inject' strikes "
                      "those of this machine",
                      kind.name)};
}

site::Footprint footprint(const site::ClusterSpec& spec) {
  site::Footprint taken = site::kController;
  taken.networkNamespaces = spec.nodes + 1;  // and the switches'
  taken.processes += spec.nodes;
  taken.threads += spec.nodes * kAgentThreads;
  taken.descriptors += spec.nodes * kControllerPerNode;
  taken.files = taken.descriptors + spec.nodes * kAgentDescriptors;
  taken.memory += spec.nodes * kAgentMemory;
  taken.memory += Bytes{spec.nodes} * (spec.rails + 1) * kNicMemory +
                  taken.networkNamespaces * kNamespaceMemory;
  return taken;
}

Result<std::unique_ptr<site::Cluster>> make(const site::ClusterSpec& spec) {
  ClusterSpec own;
  own.nodes = spec.nodes;
  own.ranks_per_node = spec.ranksPerNode;
  own.rails = spec.rails;
  own.rail_rate = spec.railRate;
  own.congestion_control = spec.congestionControl;
  RETURN_IF_ERROR(own.check());
  return std::unique_ptr<site::Cluster>(std::make_unique<Cluster>(own));
}

}  // namespace

constinit const site::Kind kKind{.name = "netns",
                                 .summary =
                                     "a network namespace per node, on this machine, with "
                                     "shaped rails between them",
                                 .most = site::kMost,
                                 .runsRanks = true,
                                 .mayHaveGpus = true,
                                 .shapesRails = true,
                                 .strikesManagement = true,
                                 .refusal = refusal,
                                 .footprint = footprint,
                                 .checkMachine = checkMachine,
                                 .make = make};

}  // namespace faultline::netns
