#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::transport::tcp {

/// An IPv4 address and port, both in host byte order.
struct Endpoint {
  std::uint32_t address = 0;
  std::uint16_t port = 0;

  sockaddr_in toSockaddr() const;
  static Endpoint fromSockaddr(const sockaddr_in& address);
  std::string toString() const;  ///< "10.0.1.2:4242"
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// Host byte order -> "10.0.1.2".
std::string formatAddress(std::uint32_t address);
/// "10.0.1.2" -> host byte order.
Result<std::uint32_t> parseAddress(const std::string& text);

/// Where a socket stands: the address it is bound to (0: any), the device that all its traffic must
/// use (empty: any), and the IP TOS byte, by which the network tells control from bulk.
struct SocketPlace {
  std::uint32_t address = 0;
  std::string device;
  int tos = 0;
};

/// The source address of a datagram that leaves from a socket without one of its own
/// (IP_PKTINFO, ip(7)). A route that is chosen by source (`ip rule from`) is found only with it.
/// Must outlive the call that sends.
class DatagramSource {
 public:
  /// 0: the kernel chooses.
  DatagramSource(msghdr& message, std::uint32_t address);
  DatagramSource(const DatagramSource&) = delete;
  DatagramSource& operator=(const DatagramSource&) = delete;

 private:
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(in_pktinfo))> control_{};
};

/// All sockets are non-blocking and close-on-exec. Streams begin as `beginSlowStart` says, and not
/// with the system's congestion control. Every TCP socket resets on close
/// (SO_LINGER {1,0}): a killed process leaves no orphan that retransmits and keeps its network
/// namespace alive; an orderly end is agreed by the application before it closes.
Result<UniqueFd> openUdp(const SocketPlace& place, std::uint16_t port = 0);
Result<UniqueFd> openListener(const SocketPlace& place, std::uint16_t port = 0);
/// A stream socket that holds a port of all interfaces and does not listen.
Result<UniqueFd> reserveStreamPort();
/// Begins to connect; the socket becomes writable when that has succeeded or failed. A place with
/// device and address stands at both: the route to `to` is looked up with its source.
Result<UniqueFd> beginConnect(const SocketPlace& place, const Endpoint& to);
/// The options of a connection that `accept` returned, of a listener of `openListener`.
Status configureAccepted(int fd, int tos);
/// The least time after which TCP sends again what was not acknowledged, on streams of this
/// process; nothing where the kernel does not let it be chosen (before Linux 6.15) and it is 200
/// ms.
std::optional<std::chrono::microseconds> streamLeastTimeout();
/// The outcome of a connection attempt, once the socket is writable: an errno, or 0.
int connectError(int fd);
/// The same in words.
Status connectOutcome(int fd);
Result<Endpoint> localEndpoint(int fd);
/// Ends a connection at once, as closing it does, whoever else has a descriptor of it: a child that
/// was forked off has one of each, and would keep it alive for as long as it runs.
void resetConnection(int fd);

/// Sends or receives exactly `count` bytes on a non-blocking stream socket, waiting until
/// `deadline`. For set-up only. kUnavailable when the other end has closed.
Status sendAll(int fd, const void* bytes, std::size_t count, TimePoint deadline);
Status receiveAll(int fd, void* bytes, std::size_t count, TimePoint deadline);

}  // namespace faultline::transport::tcp
