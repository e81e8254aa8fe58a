#pragma once

#include <sys/socket.h>

#include <map>
#include <utility>

#include "base/unique_fd.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::fabric {

/// Sends datagrams to one other process from sockets that are connected to it, so that the kernel
/// reports when the machine there refuses them: nobody has the port (ICMP port unreachable,
/// RFC 1122, 4.1.3.3). The shared sockets, to which the answers go, are told nothing.
class RefusalWatch {
 public:
  void watch(bool on) {
    on_ = on;
    sockets_.clear();
  }
  bool watching() const { return on_; }
  /// Sends over `path`; whatever goes wrong looks like a lost datagram.
  void send(int path, const transport::tcp::SocketPlace& place, const transport::tcp::Endpoint& to,
            msghdr message);
  /// The other process has another address on this path now.
  void forget(int path) { sockets_.erase(path); }
  /// Whether a datagram has been refused since this was asked last.
  bool refused() const { return refused_; }
  bool takeRefusal() { return std::exchange(refused_, false); }

 private:
  bool on_ = false;
  bool refused_ = false;
  std::map<int, UniqueFd> sockets_;  // by path
};

}  // namespace faultline::fabric
