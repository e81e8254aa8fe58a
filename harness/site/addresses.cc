#include "harness/site/addresses.h"

#include <fmt/format.h>

namespace faultline::site {
namespace {

std::string address(int subnet, int node) {
  const int host = node + 1;  // host 0 is the network itself
  return fmt::format("10.{}.{}.{}", subnet, host / 256, host % 256);
}

}  // namespace

std::string railAddress(int node, int rail) { return address(rail + 1, node); }
std::string managementAddress(int node) { return address(0, node); }
std::string railName(int rail) { return fmt::format("rail{}", rail); }

std::vector<NodeNetwork> plannedNetwork(int nodes, int rails) {
  std::vector<NodeNetwork> network;
  for (int node = 0; node < nodes; ++node) {
    NodeNetwork& one = network.emplace_back();
    one.management = {kManagementName, managementAddress(node)};
    for (int rail = 0; rail < rails; ++rail) {
      one.rails.push_back({railName(rail), railAddress(node, rail)});
    }
  }
  return network;
}

}  // namespace faultline::site
