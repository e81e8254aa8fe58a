#pragma once

#include <cstdint>

#include "base/status.h"
#include "injector/netlink/packet_socket.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// RoCE frames that have passed an interface's driver.
struct RoceCount {
  std::uint64_t sent = 0;      ///< given to the driver, i.e. past all queues and filters
  std::uint64_t received = 0;  ///< come from the driver, before any filter
};

/// Counts the RoCE frames of one interface at its driver, so that what a queue or filter swallows
/// is seen to be missing; and sends such frames of its own. Of hardware RoCE nothing is seen here.
class RoceTap {
 public:
  /// In the namespace of `socket`. Needs CAP_NET_RAW.
  static Result<RoceTap> open(const Socket& socket, int ifindex);

  /// Since it was opened, or since reset(). Frames that this very tap has sent are in it, if they
  /// have passed.
  Result<RoceCount> count();
  Status reset();

  /// Sends one roceProbe() to a link address that nobody has. False when the queue is full.
  Result<bool> sendProbe() const;

 private:
  RoceTap(PacketSocket sent, PacketSocket received, PacketSocket probe)
      : sent_(std::move(sent)), received_(std::move(received)), probe_(std::move(probe)) {}
  PacketSocket sent_;
  PacketSocket received_;
  PacketSocket probe_;  ///< a socket does not see what it sends itself
  RoceCount count_;
};

}  // namespace faultline::netlink
