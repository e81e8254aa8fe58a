#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "injector/netlink/message.h"
#include "injector/netlink/socket.h"

/// Where filters see what passes an interface: clsact, with filters of cls_bpf that decide by
/// themselves.
namespace faultline::netlink {

/// Which frames of an interface are looked at: those it has received, or those it is about to send.
enum class Passing { kReceived, kSent };

/// Foreign state is left alone: kAlreadyExists when the interface has a clsact of somebody's.
/// kUnsupported when the kernel does not have it.
Status addHook(Socket& socket, int ifindex);

/// Adds one filter, whose program `program` puts in. `attempt` says in errors what was tried.
Status addHookedFilter(Socket& socket, int ifindex, Passing passing, const std::string& attempt,
                       const std::function<void(Message& nested)>& program);

/// Removes what addHook() has made, with all filters.
Status removeHook(Socket& socket, int ifindex);

/// What hangs at an interface's hook, whoever put it there.
struct HookState {
  bool there = false;   ///< clsact, or ingress, which stands in its place
  bool clsact = false;  ///< it is the first
  int ours = 0;         ///< filters of our kind and priority
  int foreign = 0;      ///< all others
};
Result<HookState> readHook(Socket& socket, int ifindex);

/// Removes what is ours of it: the hook as well, unless somebody else has filters there.
Status removeOurHook(Socket& socket, int ifindex);

}  // namespace faultline::netlink
