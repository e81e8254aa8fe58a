#include "injector/netlink/tcp_connections.h"

#include <arpa/inet.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>

#include <array>
#include <cstring>

namespace faultline::netlink {
namespace {

// Where the kernel's tcp_info has them (linux/tcp.h, which cannot be included beside libnl's
// headers; glibc's own ends before them).
constexpr std::size_t kBytesAckedAt = 120;
constexpr std::size_t kBytesReceivedAt = 128;

constexpr std::uint8_t kEstablished = 1;  // TCP_ESTABLISHED of net/tcp_states.h

std::string endpointText(std::uint32_t address, std::uint16_t port) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address, text.data(), text.size());
  return fmt::format("{}:{}", text.data(), ntohs(port));
}

inet_diag_req_v2 tcpRequest() {
  inet_diag_req_v2 request{};
  request.sdiag_family = AF_INET;
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = 1U << kEstablished;
  return request;
}

/// 0 in what kernels before Linux 4.1 send.
std::uint64_t numberAt(const nlattr* info, std::size_t offset) {
  std::uint64_t number = 0;
  if (static_cast<std::size_t>(nla_len(info)) < offset + sizeof number) return 0;
  std::memcpy(&number, static_cast<const char*>(nla_data(info)) + offset, sizeof number);
  return number;
}

TcpConnection parseConnection(const nlmsghdr* message) {
  const auto* const found = static_cast<const inet_diag_msg*>(nlmsg_data(message));
  TcpConnection connection;
  connection.id = found->id;
  connection.ends = {found->id.idiag_src[0], found->id.idiag_dst[0], found->id.idiag_sport,
                     found->id.idiag_dport};
  connection.ifindex = static_cast<int>(found->id.idiag_if);
  connection.inode = found->idiag_inode;
  const Attributes<INET_DIAG_MAX> attributes(message, sizeof(inet_diag_msg));
  if (const nlattr* const info = attributes[INET_DIAG_INFO]; info != nullptr) {
    connection.bytes = numberAt(info, kBytesAckedAt) + numberAt(info, kBytesReceivedAt);
  }
  return connection;
}

}  // namespace

std::string TcpEnds::toString() const {
  return fmt::format("{} > {}", endpointText(from_address, from_port),
                     endpointText(to_address, to_port));
}

Result<TcpConnections> TcpConnections::open(int namespace_fd) {
  ASSIGN_OR_RETURN(Socket socket, Socket::open(namespace_fd, NETLINK_SOCK_DIAG));
  return TcpConnections(std::move(socket));
}

Result<std::vector<TcpConnection>> TcpConnections::list() {
  inet_diag_req_v2 request = tcpRequest();
  request.idiag_ext = 1U << (INET_DIAG_INFO - 1);
  Message message(SOCK_DIAG_BY_FAMILY, 0, request);
  std::vector<TcpConnection> connections;
  RETURN_IF_ERROR(socket_.dump(
      message, "list TCP connections",
      [&](const nlmsghdr* answer) { connections.push_back(parseConnection(answer)); },
      [&] { connections.clear(); }));
  return connections;
}

Status TcpConnections::destroy(const inet_diag_sockid& id, const std::string& attempt) {
  inet_diag_req_v2 request = tcpRequest();
  request.id = id;
  return socket_.request(Message(SOCK_DESTROY, 0, request), attempt);
}

Status TcpConnections::destroy(const TcpConnection& connection) {
  return destroy(connection.id, fmt::format("reset {}", connection.ends.toString()));
}

Status TcpConnections::requireDestroy() {
  inet_diag_sockid nobody{};
  nobody.idiag_cookie[0] = nobody.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  nobody.idiag_src[0] = nobody.idiag_dst[0] = htonl(INADDR_LOOPBACK);
  nobody.idiag_sport = nobody.idiag_dport = htons(1);
  const Status status = destroy(nobody, "reset TCP connections (SOCK_DESTROY)");
  if (status.code() == Code::kNotFound) return okStatus();
  return status.ok() ? errorf(Code::kInternal, "reset a connection that there is not: it worked")
                     : status;
}

}  // namespace faultline::netlink
