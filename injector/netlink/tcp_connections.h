#pragma once

#include <linux/inet_diag.h>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// The two ends of an IPv4 connection, in the order in which a segment names them. Addresses and
/// ports are in network byte order.
struct TcpEnds {
  std::uint32_t from_address = 0;
  std::uint32_t to_address = 0;
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  TcpEnds reversed() const { return {to_address, from_address, to_port, from_port}; }
  auto operator<=>(const TcpEnds&) const = default;
  /// "10.1.0.2:4000 > 10.1.0.3:5000".
  std::string toString() const;
};

/// An established IPv4 connection of a namespace.
struct TcpConnection {
  TcpEnds ends;  ///< from this end
  /// The interface that it is bound to; 0: none.
  int ifindex = 0;
  std::uint32_t inode = 0;  ///< of the socket, as in /proc/PID/fd
  std::uint64_t bytes = 0;  ///< acknowledged by the other end, and received
  inet_diag_sockid id{};    ///< the kernel's own name of it
};

/// Asks for, and acts upon, the TCP connections of one namespace (sock_diag).
class TcpConnections {
 public:
  static Result<TcpConnections> open(int namespace_fd);

  Result<std::vector<TcpConnection>> list();

  /// Ends a connection as if it had failed: this end gets an error, the other one a reset. Needs
  /// CAP_NET_ADMIN over the namespace. kNotFound when it is gone already.
  Status destroy(const TcpConnection& connection);

  /// kUnsupported when this kernel cannot destroy connections (CONFIG_INET_DIAG_DESTROY).
  Status requireDestroy();

 private:
  explicit TcpConnections(Socket socket) : socket_(std::move(socket)) {}
  Status destroy(const inet_diag_sockid& id, const std::string& attempt);

  Socket socket_;
};

}  // namespace faultline::netlink
