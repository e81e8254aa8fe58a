#pragma once

#include <string>
#include <vector>

#include "harness/site/cluster.h"

/// Names and addresses of the clusters that the bench makes itself: pure functions of node and
/// rail. Rail r is the subnet 10.(r+1).0.0/16, management 10.0.0.0/16; node n is host n+1 in each.
namespace faultline::site {

inline constexpr int kPrefixLength = 16;

std::string railAddress(int node, int rail);
std::string managementAddress(int node);

/// Names inside a node.
std::string railName(int rail);
inline constexpr const char* kManagementName = "mgmt";

/// All of them, by node.
std::vector<NodeNetwork> plannedNetwork(int nodes, int rails);

}  // namespace faultline::site
