#pragma once

#include <linux/netlink.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// Whether the kernel tells of a change of what an interface is configured with: the interface
/// itself, its addresses, routes, nexthop objects, and neighbours that are not learned. Pure.
bool isChangeOf(const nlmsghdr* message, int ifindex);

/// Hears of changes of one interface's configuration, whoever makes them.
class ConfigurationWatch {
 public:
  /// Listens from now on, in the namespace of the socket.
  static Result<ConfigurationWatch> open(const Socket& socket, int ifindex);

  /// Returns when nothing has changed for `quiet`, or after `patience`: false then.
  Result<bool> awaitQuiet(Duration quiet, Duration patience);

 private:
  ConfigurationWatch(UniqueFd fd, int ifindex) : fd_(std::move(fd)), ifindex_(ifindex) {}
  Result<bool> anyChange();

  UniqueFd fd_;
  int ifindex_;
};

}  // namespace faultline::netlink
