#include "tests/support/bulk_flow.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "injector/netlink/namespace.h"

namespace faultline::test {
namespace {

constexpr int kPollMilliseconds = 20;
constexpr std::size_t kBlock = 64 * 1024;

Result<UniqueFd> openSocket(const FlowEnd& end, int type) {
  ASSIGN_OR_RETURN(const netlink::ScopedNamespace inside,
                   netlink::ScopedNamespace::enter(end.namespace_fd));
  UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  if (!fd) return Status::fromErrno(errno, "open a socket");
  const linger reset{1, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, end.interface.data(),
                   static_cast<socklen_t>(end.interface.size())) != 0) {
    return Status::fromErrno(errno, "bind to the device " + end.interface);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, end.address.c_str(), &address.sin_addr);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Status::fromErrno(errno, "bind to " + end.address);
  }
  return fd;
}

}  // namespace

Result<std::unique_ptr<BulkFlow>> BulkFlow::start(const FlowEnd& from, const FlowEnd& to) {
  ASSIGN_OR_RETURN(UniqueFd listener, openSocket(to, SOCK_STREAM));
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Status::fromErrno(errno, "listen on " + to.address);
  }
  std::unique_ptr<BulkFlow> flow(new BulkFlow);
  ASSIGN_OR_RETURN(flow->sending_socket_, openSocket(from, SOCK_STREAM));
  if (::connect(flow->sending_socket_.get(), reinterpret_cast<const sockaddr*>(&address), size) !=
      0) {
    return Status::fromErrno(errno, "connect to " + to.address);
  }
  flow->receiving_socket_.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!flow->receiving_socket_) return Status::fromErrno(errno, "accept on " + to.address);
  const linger reset{1, 0};
  ::setsockopt(flow->receiving_socket_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  BulkFlow* const self = flow.get();
  flow->sender_ = std::thread([self] {
    const std::vector<char> block(kBlock);
    while (!self->stop_) {
      pollfd ready{self->sending_socket_.get(), POLLOUT, 0};
      if (::poll(&ready, 1, kPollMilliseconds) <= 0) continue;
      if (::send(ready.fd, block.data(), block.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
          errno != EAGAIN) {
        return;
      }
    }
  });
  flow->receiver_ = std::thread([self] {
    std::vector<char> block(kBlock);
    while (!self->stop_) {
      pollfd ready{self->receiving_socket_.get(), POLLIN, 0};
      if (::poll(&ready, 1, kPollMilliseconds) <= 0) continue;
      const ssize_t got = ::recv(ready.fd, block.data(), block.size(), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return;
      if (got > 0) self->received_ += static_cast<std::uint64_t>(got);
    }
  });
  return flow;
}

BulkFlow::~BulkFlow() {
  stop_ = true;
  if (sender_.joinable()) sender_.join();
  if (receiver_.joinable()) receiver_.join();
}

double BulkFlow::measure(Duration window) const {
  const TimePoint begin = now();
  const std::uint64_t before = receivedBytes();
  ::poll(nullptr, 0, static_cast<int>(toMilliseconds(window)));
  return static_cast<double>(receivedBytes() - before) / toSeconds(now() - begin);
}

Result<Duration> sendDatagram(const FlowEnd& from, const FlowEnd& to, int tos, Duration budget) {
  ASSIGN_OR_RETURN(const UniqueFd receiver, openSocket(to, SOCK_DGRAM));
  ASSIGN_OR_RETURN(const UniqueFd sender, openSocket(from, SOCK_DGRAM));
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(receiver.get(), reinterpret_cast<sockaddr*>(&address), &size);
  ::setsockopt(sender.get(), IPPROTO_IP, IP_TOS, &tos, sizeof tos);
  const TimePoint begin = now();
  if (::sendto(sender.get(), &tos, sizeof tos, 0, reinterpret_cast<const sockaddr*>(&address),
               size) < 0) {
    return Status::fromErrno(errno, "send a datagram");
  }
  pollfd ready{receiver.get(), POLLIN, 0};
  if (::poll(&ready, 1, static_cast<int>(toMilliseconds(budget))) <= 0) {
    return errorf(Code::kDeadlineExceeded, "the datagram did not arrive");
  }
  return now() - begin;
}

}  // namespace faultline::test
