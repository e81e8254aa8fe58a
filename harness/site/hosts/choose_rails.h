#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "harness/site/cluster.h"
#include "harness/site/hosts/hosts_spec.h"
#include "wire/agent.h"

namespace faultline::hosts {

/// The networks of the hosts, and why these.
struct Choice {
  std::vector<site::NodeNetwork> network;  ///< by host
  BitsPerSecond rate = 0;  ///< of the slowest rail, or as the scenario says; 0: not known
  /// For people, by a name for each: "management", "rail_0", "not_rails".
  std::map<std::string, std::string> words;
};

/// Finds the management network and the rails of `spec.names`, whose `facts` these are. Rails by
/// name are taken as they are, if they can carry anything. Others are found: what is up, has a
/// carrier and an address, is Ethernet or InfiniBand, physical or a veth, is not the management
/// network nor on the way to the default gateway, and has a subnet in which each host has one;
/// fastest first, then those with RDMA devices, then in the order of the first host's PCI addresses
/// and names. Of those only the fastest are taken, unless a number of them is asked for. kNotFound
/// with what is missing and where, kInvalidArgument for a name that no interface has. Pure.
Result<Choice> chooseRails(const HostsSpec& spec, const std::vector<wire::HostFacts>& facts);

/// Of hosts that are all this machine: addresses of loopback. Pure.
Choice loopbackRails(const HostsSpec& spec);

}  // namespace faultline::hosts
