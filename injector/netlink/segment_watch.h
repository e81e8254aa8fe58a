#pragma once

#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/netlink/socket.h"
#include "injector/netlink/tcp_connections.h"

namespace faultline::netlink {

/// An IPv4 TCP segment that ends a connection, or one direction of it.
struct EndingSegment {
  TcpEnds ends;
  bool reset = false;  ///< RST; otherwise FIN
};

/// Sees the segments that end connections pass an interface, in either direction. Others are sorted
/// out by a filter in the kernel.
class SegmentWatch {
 public:
  /// Opens a packet socket in the namespace of `socket`. Needs CAP_NET_RAW.
  static Result<SegmentWatch> open(const Socket& socket, int ifindex);

  /// What has passed since the last call.
  Result<std::vector<EndingSegment>> passed();

 private:
  explicit SegmentWatch(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace faultline::netlink
