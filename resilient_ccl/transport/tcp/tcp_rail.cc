#include "resilient_ccl/transport/tcp/tcp_rail.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/system_calls.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::transport::tcp {

Result<std::size_t> TcpRail::receive(std::span<const iovec> pieces) {
  for (;;) {
    countSystemCall();
    const ssize_t got = readv(socket_.get(), pieces.data(), static_cast<int>(pieces.size()));
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) return errorf(Code::kUnavailable, "the other end closed the rail");
    if (errno == EAGAIN) return std::size_t{0};
    if (errno != EINTR) return Status::fromErrno(errno, "receive on a rail");
  }
}

Result<std::size_t> TcpRail::send(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  for (;;) {
    countSystemCall();
    const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EAGAIN) return std::size_t{0};
    if (errno != EINTR) return Status::fromErrno(errno, "send on a rail");
  }
}

/// What the queue of this machine's own port refuses stays in the socket. With nothing else under
/// way no acknowledgement makes the kernel try again, and it waits 200 ms, whatever
/// TCP_RTO_MIN_US says (tcp_probe0_base in include/net/tcp.h). Setting TCP_NODELAY sends at once.
void TcpRail::pushAgain() const {
  constexpr int kOn = 1;
  countSystemCall();
  (void)setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof(kOn));
}

Delivery TcpRail::delivery() const {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (fenced()) return {};
  countSystemCall();
  if (getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  if (info.tcpi_unacked == 0 && info.tcpi_notsent_bytes > 0) pushAgain();
  return {.acknowledged = info.tcpi_bytes_acked,
          .outstanding = info.tcpi_unacked > 0,
          .roundTrip = std::chrono::microseconds(info.tcpi_rtt)};
}

void TcpRail::close() {
  if (process_.here()) resetConnection(socket_.get());
  socket_.reset();
}

}  // namespace faultline::transport::tcp
