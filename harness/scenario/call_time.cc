#include "harness/scenario/call_time.h"

#include <algorithm>
#include <chrono>

namespace faultline::scenario {
namespace {

constexpr double kBitsOfAByte = 8;

/// Share of its data that a call sends through a node's rails: what each rank of a ring sends.
double sentShare(schedule::Collective operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (operation) {
    case schedule::Collective::kAllReduce:
      return 2 * others;
    case schedule::Collective::kReduceScatter:
    case schedule::Collective::kAllGather:
    case schedule::Collective::kAllToAll:
      return others;
    case schedule::Collective::kBroadcast:
    case schedule::Collective::kReduce:
    case schedule::Collective::kSendRecv:
      return 1;
  }
  return 1;
}

}  // namespace

Duration durationOfSeconds(double seconds) {
  constexpr double kLongest = 1e9;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, kLongest)));
}

double secondsOfCall(const Cluster& cluster, schedule::Collective operation, Bytes size) {
  if (cluster.railRate == 0) return 0;  // nobody knows
  const double rate = static_cast<double>(cluster.railRate) * cluster.rails;
  return sentShare(operation, cluster.ranks()) * static_cast<double>(size) * kBitsOfAByte / rate;
}

double secondsOfIteration(const Scenario& scenario) {
  const Workload& workload = scenario.workload;
  const double compute = std::chrono::duration<double>(workload.compute.duration).count();
  const double network =
      secondsOfCall(scenario.cluster, schedule::Collective::kAllReduce, workload.gradient.size);
  return std::max(compute, network) +
         std::min(compute, network) / std::max(1, workload.gradient.buckets);
}

}  // namespace faultline::scenario
