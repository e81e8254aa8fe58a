#include "resilient_ccl/transport/tcp/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "resilient_ccl/transport/tcp/congestion_control.h"

namespace faultline::transport::tcp {
namespace {

Status setOption(int fd, int level, int option, const void* value, socklen_t size,
                 std::string_view name) {
  if (setsockopt(fd, level, option, value, size) == 0) return okStatus();
  return Status::fromErrno(errno, fmt::format("set {} on a socket", name));
}

Status setFlag(int fd, int level, int option, int value, std::string_view name) {
  return setOption(fd, level, option, &value, sizeof(value), name);
}

/// TCP_RTO_MIN_US of Linux 6.15: the system's headers may be older.
constexpr int kTcpRtoMinUs = 45;
/// What an outage too short for a verdict has swallowed goes again after so long, and not after 200
/// ms. Above what a port's queue may hold back (the lab's: 10 ms), so that a rail that gets more to
/// carry from one moment to the next does not look as if it had lost it. A kernel refuses less than
/// two of its ticks, 20 ms where they are longest.
constexpr int kLeastTimeoutUs = 20'000;

/// Older kernels do without.
void shortenTimeout(int fd) {
  (void)setsockopt(fd, IPPROTO_TCP, kTcpRtoMinUs, &kLeastTimeoutUs, sizeof(kLeastTimeoutUs));
}

Status configureStream(int fd, int tos) {
  beginSlowStart(fd);
  shortenTimeout(fd);
  const linger reset{.l_onoff = 1, .l_linger = 0};
  RETURN_IF_ERROR(setOption(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset), "SO_LINGER"));
  RETURN_IF_ERROR(setFlag(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"));
  return setFlag(fd, IPPROTO_IP, IP_TOS, tos, "IP_TOS");
}

Result<UniqueFd> openSocket(int type, const SocketPlace& place, std::uint16_t port) {
  UniqueFd fd(socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return Status::fromErrno(errno, "create a socket");
  // Not for datagrams: the kernel would give one port to two processes, and each the other's.
  if (type == SOCK_STREAM) {
    RETURN_IF_ERROR(setFlag(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"));
  }
  if (!place.device.empty()) {
    RETURN_IF_ERROR(setOption(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, place.device.c_str(),
                              static_cast<socklen_t>(place.device.size()),
                              fmt::format("SO_BINDTODEVICE {}", place.device)));
  }
  const Endpoint local{place.address, port};
  const sockaddr_in address = local.toSockaddr();
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Status::fromErrno(errno, fmt::format("bind a socket to {}", local.toString()));
  }
  return fd;
}

Status waitFor(int fd, short events, TimePoint deadline) {
  for (;;) {
    const Duration left = deadline - now();
    if (left <= Duration::zero()) return errorf(Code::kDeadlineExceeded, "no answer in time");
    pollfd waiting{fd, events, 0};
    const int milliseconds =
        static_cast<int>(duration_cast<std::chrono::milliseconds>(left).count()) + 1;
    const int ready = poll(&waiting, 1, milliseconds);
    if (ready > 0) return okStatus();
    if (ready < 0 && errno != EINTR) return Status::fromErrno(errno, "wait for a socket");
  }
}

}  // namespace

sockaddr_in Endpoint::toSockaddr() const {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = htonl(address);
  result.sin_port = htons(port);
  return result;
}

Endpoint Endpoint::fromSockaddr(const sockaddr_in& address) {
  return {ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
}

std::string formatAddress(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255,
                     address & 255);
}

std::string Endpoint::toString() const {
  return fmt::format("{}:{}", formatAddress(address), port);
}

Result<std::uint32_t> parseAddress(const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) {
    return errorf(Code::kInvalidArgument, "'{}' is not an IPv4 address", text);
  }
  return ntohl(address.s_addr);
}

DatagramSource::DatagramSource(msghdr& message, std::uint32_t address) {
  if (address == 0) return;
  message.msg_control = control_.data();
  message.msg_controllen = control_.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = IPPROTO_IP;
  header->cmsg_type = IP_PKTINFO;
  header->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  in_pktinfo info{};  // no interface: the socket's device, if it has one
  info.ipi_spec_dst.s_addr = htonl(address);
  std::memcpy(CMSG_DATA(header), &info, sizeof(info));
}

Result<UniqueFd> openUdp(const SocketPlace& place, std::uint16_t port) {
  ASSIGN_OR_RETURN(UniqueFd fd, openSocket(SOCK_DGRAM, place, port));
  RETURN_IF_ERROR(setFlag(fd.get(), IPPROTO_IP, IP_TOS, place.tos, "IP_TOS"));
  return fd;
}

Result<UniqueFd> openListener(const SocketPlace& place, std::uint16_t port) {
  ASSIGN_OR_RETURN(UniqueFd fd, openSocket(SOCK_STREAM, place, port));
  // Accepted sockets inherit both. Chosen later, the timeout would stay at 200 ms for the first
  // round trips, and a default like BBR would leave its pacing behind.
  beginSlowStart(fd.get());
  shortenTimeout(fd.get());
  constexpr int kBacklog = 1024;
  if (listen(fd.get(), kBacklog) != 0) return Status::fromErrno(errno, "listen on a socket");
  return fd;
}

Result<UniqueFd> reserveStreamPort() { return openSocket(SOCK_STREAM, {}, 0); }

Result<UniqueFd> beginConnect(const SocketPlace& place, const Endpoint& to) {
  ASSIGN_OR_RETURN(UniqueFd fd, openSocket(SOCK_STREAM, place, 0));
  RETURN_IF_ERROR(configureStream(fd.get(), place.tos));
  const sockaddr_in address = to.toSockaddr();
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno != EINPROGRESS) {
    return Status::fromErrno(errno, fmt::format("connect to {}", to.toString()));
  }
  return fd;
}

std::optional<std::chrono::microseconds> streamLeastTimeout() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int timeout = 0;
  socklen_t size = sizeof(timeout);
  shortenTimeout(fd.get());
  if (getsockopt(fd.get(), IPPROTO_TCP, kTcpRtoMinUs, &timeout, &size) != 0) return std::nullopt;
  return std::chrono::microseconds(timeout);
}

Status configureAccepted(int fd, int tos) { return configureStream(fd, tos); }

void resetConnection(int fd) {
  const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
  (void)connect(fd, &nobody, sizeof(nobody));
}

int connectError(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 ? errno : error;
}

Status connectOutcome(int fd) {
  const int error = connectError(fd);
  return error == 0 ? okStatus() : Status::fromErrno(error, "connect");
}

Result<Endpoint> localEndpoint(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Status::fromErrno(errno, "read a socket's address");
  }
  return Endpoint::fromSockaddr(address);
}

Status sendAll(int fd, const void* bytes, std::size_t count, TimePoint deadline) {
  const auto* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t sent = send(fd, at, count, MSG_NOSIGNAL);
    if (sent > 0) {
      at += sent;
      count -= static_cast<std::size_t>(sent);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return Status::fromErrno(errno, "send");
    RETURN_IF_ERROR(waitFor(fd, POLLOUT, deadline));
  }
  return okStatus();
}

Status receiveAll(int fd, void* bytes, std::size_t count, TimePoint deadline) {
  auto* at = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t got = recv(fd, at, count, 0);
    if (got == 0) return errorf(Code::kUnavailable, "the other end closed the connection");
    if (got > 0) {
      at += got;
      count -= static_cast<std::size_t>(got);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return Status::fromErrno(errno, "receive");
    RETURN_IF_ERROR(waitFor(fd, POLLIN, deadline));
  }
  return okStatus();
}

}  // namespace faultline::transport::tcp
