#pragma once

#include <string>
#include <vector>

#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// One interface: a socket opened inside its namespace (borrowed, outlives this) and its index.
struct LinkEnd {
  Socket* socket = nullptr;
  int ifindex = 0;
};

/// The link that a fault acts on. It says nothing of nodes, rails or ranks: the injector does not
/// know what the link is used for.
struct LinkTarget {
  LinkEnd nic;         ///< the computer's end
  LinkEnd attachment;  ///< the switch's end
  /// The other ports of the attachment's bridge, in the attachment's namespace.
  std::vector<int> siblings;
  /// Of faults between two links: the other one, whose attachment is one of the siblings.
  LinkEnd peer_nic{};
  LinkEnd peer_attachment{};
  /// Of faults of the processes in the computer's namespace: only of those that have all of these
  /// in the environment that they were started with, "NAME=value" each.
  std::vector<std::string> startedWith{};
  /// What the target is called where it comes from, for programs of users: "NAME=value" each.
  std::vector<std::string> calledBy{};
};

}  // namespace faultline::netlink
