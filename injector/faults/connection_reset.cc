#include "injector/faults/connection_reset.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string>

#include "injector/faults/fault_list.h"
#include "injector/faults/node_processes.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/address.h"
#include "injector/netlink/interface.h"

namespace faultline::injector {
namespace {

constexpr std::array<std::string_view, 2> kResetHow{"reset", "half_close"};
constexpr std::array<std::string_view, 2> kConnections{"one", "all"};
constexpr std::array kConnectionResetParameters{
    ParameterSpec{"how", ParameterType::kEnum, "reset",
                  "reset: both ends lose the connection at once; half_close: the node's side ends "
                  "what it sends, without its program's doing, and can still receive",
                  kResetHow},
    ParameterSpec{"connections", ParameterType::kEnum, "one",
                  "one: the connection over this NIC that has moved most bytes so far; all: every "
                  "one over this NIC",
                  kConnections},
};
constexpr std::array kConnectionSignatures{Signature{{"rail"}, {"rail"}}};

}  // namespace

constinit const FaultKind kConnectionResetKind{
    .name = "connection_reset",
    .summary = "TCP connections over one NIC die while its port lives.",
    .sees = "errors or the end of the stream on some connections, and nothing else",
    .evidence =
        "the segment that ends the connection passes the switch's port, and the kernel no "
        "longer has the connection as established",
    .undo = "nothing to undo: programs may connect again",
    .parameters = kConnectionResetParameters,
    .signatures = kConnectionSignatures,
    .ofConnections = true,
    .damage = nothing,
    .needs = {KernelMechanism::kSocketDestroy, "how: reset"},
    .make = makeOne<ConnectionReset>};

namespace {

/// A copy of the descriptor by which some process of the namespace holds this socket.
Result<UniqueFd> copyOfSocket(int namespace_fd, std::uint32_t inode) {
  ASSIGN_OR_RETURN(const std::vector<HeldProcess> processes, processesIn(namespace_fd));
  const std::string wanted = fmt::format("socket:[{}]", inode);
  for (const HeldProcess& process : processes) {
    std::error_code error;
    std::filesystem::directory_iterator entry(fmt::format("/proc/{}/fd", process.pid()), error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      std::error_code unreadable;
      if (std::filesystem::read_symlink(entry->path(), unreadable) != wanted) continue;
      const int number = std::stoi(entry->path().filename().string());
      UniqueFd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, process.pidFd(), number, 0)));
      if (copy) return copy;
      return Status::fromErrno(
          errno, fmt::format("reach socket {} of process {} (pidfd_getfd)", inode, process.pid()));
    }
  }
  return errorf(Code::kNotFound, "no process of the node holds socket {}", inode);
}

std::string peerOf(const netlink::TcpConnection& connection) {
  return netlink::Ipv4Address{connection.ends.to_address}.toString();
}

/// Whether the kernel knows the call at all: it refuses descriptors that are none.
Status requireDescriptorCopies() {
  RETURN_IF_ERROR(requireProcessHandles());
  if (::syscall(SYS_pidfd_getfd, -1, -1, 0) < 0 && errno == ENOSYS) {
    return errorf(Code::kUnsupported,
                  "this kernel cannot reach another process's socket (pidfd_getfd, Linux 5.6)");
  }
  return okStatus();
}

}  // namespace

ConnectionReset::ConnectionReset(const FaultParameters& parameters,
                                 const netlink::LinkTarget& target)
    : target_(target),
      half_close_(parameters.get<std::string>("how") == "half_close"),
      all_(parameters.get<std::string>("connections") == "all") {}

ConnectionReset::~ConnectionReset() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("connection_reset: {}", status.message());
}

std::string ConnectionReset::mechanism() const {
  return half_close_ ? "the process's socket is shut down for writing (pidfd_getfd)"
                     : "netlink: the kernel destroys the socket (SOCK_DESTROY)";
}

Status ConnectionReset::prepare() {
  ASSIGN_OR_RETURN(netlink::TcpConnections connections,
                   netlink::TcpConnections::open(target_.nic.socket->namespaceFd()));
  connections_.emplace(std::move(connections));
  RETURN_IF_ERROR((half_close_ ? requireDescriptorCopies() : connections_->requireDestroy())
                      .withContext("connection_reset"));
  ASSIGN_OR_RETURN(
      netlink::SegmentWatch watch,
      netlink::SegmentWatch::open(*target_.attachment.socket, target_.attachment.ifindex));
  watch_.emplace(std::move(watch));
  return okStatus();
}

/// Those bound to the NIC, or to no NIC and from one of its addresses.
Result<std::vector<netlink::TcpConnection>> ConnectionReset::ownConnections() {
  ASSIGN_OR_RETURN(std::vector<netlink::TcpConnection> connections, connections_->list());
  ASSIGN_OR_RETURN(const std::vector<netlink::Ipv4Address> addresses,
                   netlink::listAddresses(*target_.nic.socket, target_.nic.ifindex));
  std::erase_if(connections, [&](const netlink::TcpConnection& connection) {
    if (connection.ifindex != 0) return connection.ifindex != target_.nic.ifindex;
    return std::ranges::count(addresses, connection.ends.from_address,
                              &netlink::Ipv4Address::binary) == 0;
  });
  return connections;
}

Status ConnectionReset::apply() {
  RETURN_IF_ERROR(watch_->passed().status());  // what ended earlier is not our doing
  victims_.clear();
  seen_.clear();
  fins_ = 0;
  ASSIGN_OR_RETURN(std::vector<netlink::TcpConnection> connections, ownConnections());
  std::sort(connections.begin(), connections.end(),
            [](const auto& left, const auto& right) { return left.bytes > right.bytes; });
  if (!all_ && connections.size() > 1) connections.resize(1);
  applied_ = true;  // without any connection there will be no evidence
  for (const netlink::TcpConnection& connection : connections) victims_.insert(connection.ends);
  if (half_close_) return endSending(connections);
  for (const netlink::TcpConnection& connection : connections) {
    RETURN_IF_ERROR(transit(
        true, [&] { return connections_->destroy(connection); }, peerOf(connection)));
  }
  return okStatus();
}

Status ConnectionReset::endSending(const std::vector<netlink::TcpConnection>& connections) {
  // To find a socket takes milliseconds: first all of them, so that they end together.
  std::vector<UniqueFd> sockets;
  for (const netlink::TcpConnection& connection : connections) {
    ASSIGN_OR_RETURN(sockets.emplace_back(),
                     copyOfSocket(target_.nic.socket->namespaceFd(), connection.inode));
  }
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    const auto close = [&]() -> Status {
      if (::shutdown(sockets[i].get(), SHUT_WR) == 0) return okStatus();
      return Status::fromErrno(errno, fmt::format("half close {}", connections[i].ends.toString()));
    };
    RETURN_IF_ERROR(transit(true, close, peerOf(connections[i])));
  }
  return okStatus();
}

Status ConnectionReset::step(TimePoint /*now*/) {
  if (conclusive() || !watch_) return okStatus();
  ASSIGN_OR_RETURN(const std::vector<netlink::EndingSegment> segments, watch_->passed());
  for (const netlink::EndingSegment& segment : segments) {
    // A program that notices the half close may end the connection before its bytes, and with them
    // the FIN, have left.
    if (!segment.reset && !half_close_) continue;
    for (const netlink::TcpEnds& ends : {segment.ends, segment.ends.reversed()}) {
      if (victims_.contains(ends) && seen_.insert(ends).second && !segment.reset) ++fins_;
    }
  }
  ASSIGN_OR_RETURN(const std::vector<netlink::TcpConnection> left, ownConnections());
  established_.clear();
  for (const netlink::TcpConnection& connection : left) {
    if (victims_.contains(connection.ends)) established_.insert(connection.ends);
  }
  ASSIGN_OR_RETURN(const netlink::NetDevice link,
                   netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
  carrier_ = link.carrier;
  return okStatus();
}

bool ConnectionReset::conclusive() const {
  return !victims_.empty() && seen_ == victims_ && established_.empty() && carrier_;
}

Evidence ConnectionReset::verdict() const {
  if (victims_.empty()) {
    return {"connection_reset", "segments at the switch's port",
            "no TCP connection was established over the NIC", false};
  }
  return {
      "connection_reset", "segments at the switch's port",
      fmt::format("of {} connections ({}{}) {} ended at the switch's port with a FIN and {} "
                  "with a RST, {} are still established; the NIC {} its carrier",
                  victims_.size(), victims_.begin()->toString(), victims_.size() > 1 ? ", ..." : "",
                  fins_, seen_.size() - static_cast<std::size_t>(fins_), established_.size(),
                  carrier_ ? "kept" : "lost"),
      conclusive()};
}

Status ConnectionReset::revert() {
  if (!std::exchange(applied_, false)) return okStatus();
  return transit(false, [] { return okStatus(); });
}

}  // namespace faultline::injector
