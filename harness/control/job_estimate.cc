#include "harness/control/job_estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/scenario/cluster_reader.h"
#include "harness/scenario/workload_kind.h"
#include "harness/site/kind.h"
#include "resilient_ccl/transport/shm/segment.h"

namespace faultline::run {
namespace {

// Measured with small runs, rounded up; docs/command.md says how.

constexpr std::int64_t kControllerPerRank = 1;  // its messages
constexpr std::int64_t kAgentPerRank = 2;       // its end, its lifeline
constexpr std::int64_t kAgentPerGuard = 3;      // and its messages
// A rank that has no peer and no gradient; its main thread, its lifeline, what
// communicates, and what plans.
constexpr Bytes kRankMemory = 4 << 20;
constexpr std::int64_t kRankThreads = 4;
constexpr std::int64_t kRankDescriptors = 14;
constexpr std::int64_t kRankPerRail = 8;  // listener, datagrams, and what watches its port
// A connection of a rail at one of its two ends: what is read ahead, the state of the rail, and
// what the kernel has in its buffers while it is busy.
constexpr Bytes kConnectionMemory = 64 << 10;
// A peer of a rank, over whatever rails.
constexpr Bytes kPeerMemory = 16 << 10;
// A peer in the same node: a socket, the memory that both share, and what rings at either end.
constexpr std::int64_t kLocalPeerDescriptors = 3;
// What keeps the programs of a node.
constexpr Bytes kGuardMemory = 8 << 20;
constexpr std::int64_t kGuardDescriptors = 16;
constexpr std::int64_t kGuardPerProgram = 3;

/// Processor time of a GiB that a rank sends and another one receives, both ends together, where
/// least was seen (docs/self_test.md).
constexpr double kSecondsPerGib = 0.5;

/// What a rank has of the job's data.
Bytes dataOf(const scenario::Scenario& scenario) {
  const auto data = scenario.workload.kind->dataOfRank;
  return data == nullptr ? 0 : data(scenario);
}

}  // namespace

JobEstimate estimateJob(const scenario::Scenario& scenario) {
  const scenario::Cluster& cluster = scenario.cluster;
  const site::ClusterSpec spec = scenario::specOf(cluster);
  JobEstimate estimate{cluster.kind->footprint(spec), !scenario.workload.kind->runsRanks};
  if (cluster.kind->ownKernels) return estimate;  // what runs there is in their memory

  const std::int64_t nodes = cluster.nodes, rails = cluster.rails, ranks = cluster.ranks();
  if (estimate.foreign) {
    estimate.processes += nodes + ranks;  // a guard in each node
    estimate.threads += nodes + ranks;
    estimate.processNamespaces += nodes;
    estimate.memory += nodes * kGuardMemory;
    estimate.files += nodes * (kAgentPerGuard + kGuardDescriptors) + kGuardPerProgram * ranks;
    return estimate;
  }
  const std::int64_t local = cluster.ranksPerNode - 1, remote = ranks - 1 - local;
  const std::int64_t ends = ranks * remote * rails;
  estimate.processes += ranks;
  estimate.threads += ranks * (kRankThreads + scenario.ioThreads);
  estimate.connections = ends / 2;
  // Rank 0 meets all others before they go.
  const std::int64_t rank = kRankDescriptors + rails * kRankPerRail + remote * rails +
                            local * kLocalPeerDescriptors + scenario.ioThreads;
  const std::int64_t controller = estimate.descriptors + ranks * kControllerPerRank;
  estimate.descriptors = std::max(rank + ranks - 1, controller);
  estimate.files += ranks * (kControllerPerRank + kAgentPerRank + rank) + 2 * (ranks - 1);
  const Bytes shared = static_cast<Bytes>(transport::shm::Segment::kPayloadRing +
                                          transport::shm::Segment::kDatagramRing);
  estimate.memory +=
      ranks * (kRankMemory + dataOf(scenario) + (ranks - 1) * kPeerMemory + local * shared) +
      ends * kConnectionMemory;
  return estimate;
}

std::string inWords(const JobEstimate& estimate) {
  constexpr double kMib = 1 << 20;
  constexpr double kMibPerGib = 1024;
  const double memory = static_cast<double>(estimate.memory) / kMib;
  std::string text = fmt::format("needs about {} processes with {} threads, ", estimate.processes,
                                 estimate.threads);
  text += memory < kMibPerGib ? fmt::format("{:.0f} MiB of memory", memory)
                              : fmt::format("{:.1f} GiB of memory", memory / kMibPerGib);
  text += fmt::format(", {} descriptors (up to {} in one process)", estimate.files,
                      estimate.descriptors);
  if (estimate.networkNamespaces > 0) {
    text += fmt::format(", {} network namespaces", estimate.networkNamespaces);
  }
  if (estimate.connections > 0) text += fmt::format(", {} connections", estimate.connections);
  if (estimate.foreign) text += ", and whatever the programs take";
  return text;
}

std::vector<std::string> shortages(const JobEstimate& estimate, const Capacity& capacity) {
  std::vector<std::string> missing;
  const auto count = [&](std::int64_t needed, const std::optional<Room>& room,
                         std::string_view what) {
    if (!room || static_cast<double>(needed) <= room->left) return;
    missing.push_back(fmt::format("it needs about {} {}, and {} leaves {:.0f}", needed, what,
                                  room->limit, room->left));
  };
  if (capacity.memory && static_cast<double>(estimate.memory) > capacity.memory->left) {
    constexpr double kGib = 1 << 30;
    missing.push_back(fmt::format("it needs about {:.1f} GiB of memory, and {} leaves {:.1f} GiB",
                                  static_cast<double>(estimate.memory) / kGib,
                                  capacity.memory->limit, capacity.memory->left / kGib));
  }
  count(estimate.threads, capacity.threads, "processes and threads");
  count(estimate.descriptors, capacity.descriptors, "descriptors in one process");
  count(estimate.files, capacity.files, "open files");
  count(estimate.networkNamespaces, capacity.networkNamespaces, "network namespaces");
  count(estimate.processNamespaces, capacity.processNamespaces, "process namespaces");
  return missing;
}

std::vector<std::string> tooFast(const scenario::Scenario& scenario, const Capacity& capacity) {
  const scenario::Cluster& cluster = scenario.cluster;
  if (!cluster.kind->shapesRails || cluster.railRate == 0) return {};
  const auto rate = static_cast<double>(cluster.railRate) * cluster.nodes * cluster.rails;
  constexpr double kBitsPerGib = 8.0 * (1 << 30);
  const double most = capacity.processors * kBitsPerGib / kSecondsPerGib;
  if (rate <= most) return {};
  constexpr double kGigabit = 1e9;
  return {
      fmt::format("the rails of all nodes carry {:.0f} Gbit/s together, and {} processor(s) "
                  "move about {:.0f} Gbit/s at best: when all send at once, the processors are "
                  "measured and not the rails",
                  rate / kGigabit, capacity.processors, most / kGigabit)};
}

}  // namespace faultline::run
