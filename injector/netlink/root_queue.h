#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/units.h"
#include "injector/netlink/socket.h"

/// A queueing discipline of ours at the root of an interface, where there is only the kernel's
/// default: it acts on everything that leaves the interface through the kernel.
namespace faultline::netlink {

/// What has passed our root queue, and what waits in it.
struct RootQueueState {
  std::string kind;
  std::uint64_t sent_bytes = 0;
  std::uint64_t drops = 0;
  Bytes backlog = 0;
};

/// The queue at the root of an interface, whoever put it there.
struct RootQueue {
  std::uint32_t handle = 0;  ///< 0: the kernel's default, which nobody put there
  RootQueueState state;
};
Result<RootQueue> readAnyRootQueue(Socket& socket, int ifindex);

/// kAlreadyExists unless it is the kernel's default: that of others is not ours to replace.
/// `attempt` is what was to be done, for the message.
Status requireDefaultRoot(Socket& socket, int ifindex, std::string_view attempt);

/// Each is kAlreadyExists where somebody has put a queue there (it is not ours to replace), and
/// kUnsupported where the kernel lacks the kind.
///
/// Token bucket: sends at `rate` and no faster, drops what exceeds its bounded queue.
Status installTokenBucket(Socket& socket, int ifindex, BitsPerSecond rate);
/// Loses everything without a word to the sender (sch_blackhole, built into every kernel with
/// traffic control).
Status installBlackhole(Socket& socket, int ifindex);
/// netem with a loss of 100 %.
Status installNetemLoss(Socket& socket, int ifindex);

/// kNotFound when the root queue is not ours.
Result<RootQueueState> readRootQueue(Socket& socket, int ifindex);

/// Removes it, and the kernel puts its default there again; kNotFound when it is not ours.
Status removeRootQueue(Socket& socket, int ifindex);

}  // namespace faultline::netlink
