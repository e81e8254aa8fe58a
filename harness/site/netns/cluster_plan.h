#pragma once

#include <string>

#include "base/status.h"
#include "base/units.h"
#include "harness/site/addresses.h"
#include "harness/site/limits.h"

namespace faultline::netns {

/// What cluster to make.
struct ClusterSpec {
  int nodes = 2;
  int ranks_per_node = 1;
  int rails = 1;                ///< NICs per node besides the management one
  BitsPerSecond rail_rate = 0;  ///< per direction; 0: not shaped (and then not to be throttled)
  unsigned mtu = kEthernetMtu;  ///< bytes, of the rails
  /// Of TCP, for sockets that choose none; empty: the machine's default.
  std::string congestion_control = {};
  /// Both ends of a rail's veth pair get the same index: the kernel takes them for physical ports
  /// and coalesces their carrier events.
  bool coalesced_events = false;

  static constexpr unsigned kEthernetMtu = 1500;
  static constexpr BitsPerSecond kSlowestRail = 1'000'000;
  static constexpr BitsPerSecond kFastestRail = 400'000'000'000;
  static constexpr unsigned kSmallestMtu = 576;
  static constexpr unsigned kLargestMtu = 65'535;

  /// kInvalidArgument with what is possible.
  Status check() const;

  /// The kernel learns neighbours in one table for all namespaces, also those of other clusters. It
  /// keeps 512 of them for long, and has no place for more than 1024
  /// (net.ipv4.neigh.default.gc_thresh2, 3). With so many in a cluster, some tens of clusters fit.
  static constexpr int kMostLearnedNeighbours = 32;
  /// Whether the nodes' NICs have to be told of each other instead.
  bool tooManyNeighbours() const;
};

/// Names and interface indexes of a cluster besides those that its nodes are told
/// (site/addresses.h): pure functions of node and rail.
using site::kManagementName;
using site::kPrefixLength;
using site::managementAddress;
using site::railAddress;
using site::railName;

/// Names inside the switch's namespace.
std::string railPortName(int node, int rail);
std::string managementPortName(int node);
std::string railBridgeName(int rail);
inline constexpr const char* kManagementBridgeName = "br-mgmt";

/// Interface indexes. A switch port's is never equal to that of the node's end, because the kernel
/// coalesces carrier events of an interface whose index equals that of its other end.
int railIndex(int rail);
inline constexpr int kManagementIndex = 2;
int railPortIndex(int node, int rail);
int managementPortIndex(int node);
int railBridgeIndex(int rail);
inline constexpr int kManagementBridgeIndex = 2;

}  // namespace faultline::netns
