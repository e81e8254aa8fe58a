#include "harness/site/netns/cluster_plan.h"

#include <fmt/format.h>

namespace faultline::netns {
namespace {

// Index 1 is the loopback's, 2 that of management.
constexpr int kFirstRailIndex = 10;
// Above every index in a node's namespace, so that no port's index equals its other end's.
constexpr int kFirstPortIndex = 1000;
constexpr int kPortsPerNode = site::kMost.rails + 1;

}  // namespace

Status ClusterSpec::check() const {
  const auto bounded = [](const char* name, auto value, auto low, auto high) -> Status {
    if (value >= low && value <= high) return okStatus();
    return errorf(Code::kInvalidArgument, "cluster: {} is {}; {} to {} is possible", name, value,
                  low, high);
  };
  RETURN_IF_ERROR(bounded("nodes", nodes, 1, site::kMost.nodes));
  RETURN_IF_ERROR(bounded("rails", rails, 1, site::kMost.rails));
  RETURN_IF_ERROR(bounded("ranks_per_node", ranks_per_node, 1, site::kMost.ranksPerNode));
  RETURN_IF_ERROR(bounded("mtu", mtu, unsigned{kSmallestMtu}, unsigned{kLargestMtu}));
  if (rail_rate == 0) return okStatus();
  if (rail_rate < kSlowestRail || rail_rate > kFastestRail) {
    return errorf(Code::kInvalidArgument, "cluster: rail_rate is {}; {} to {} is possible",
                  formatRate(rail_rate), formatRate(kSlowestRail), formatRate(kFastestRail));
  }
  return okStatus();
}

bool ClusterSpec::tooManyNeighbours() const {
  return nodes * (nodes - 1) * (rails + 1) > kMostLearnedNeighbours;  // and management
}

std::string railPortName(int node, int rail) { return fmt::format("n{}-rail{}", node, rail); }
std::string managementPortName(int node) { return fmt::format("n{}-mgmt", node); }
std::string railBridgeName(int rail) { return fmt::format("br-rail{}", rail); }

int railIndex(int rail) { return kFirstRailIndex + rail; }
int railPortIndex(int node, int rail) { return kFirstPortIndex + node * kPortsPerNode + 1 + rail; }
int managementPortIndex(int node) { return kFirstPortIndex + node * kPortsPerNode; }
int railBridgeIndex(int rail) { return kFirstRailIndex + rail; }

}  // namespace faultline::netns
