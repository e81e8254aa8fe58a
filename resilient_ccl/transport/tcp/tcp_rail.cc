#include "resilient_ccl/transport/tcp/tcp_rail.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/sanitizers.h"
#include "base/system_calls.h"
#include "resilient_ccl/transport/tcp/socket.h"

#ifdef FAULTLINE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace faultline::transport::tcp {

namespace {

#ifdef FAULTLINE_ADDRESS_SANITIZER
/// AddressSanitizer's own sendmsg looks at what was sent when the call has returned. By then the
/// peer may have acknowledged it, and the thread that owns the message have freed it, rightly. So
/// the look comes before the call, when the bytes have to be there.
ssize_t sendMessage(int socket, const msghdr& message, int flags) {
  for (std::size_t i = 0; i < message.msg_iovlen; ++i) {
    const iovec& piece = message.msg_iov[i];
    void* bad = __asan_region_is_poisoned(piece.iov_base, piece.iov_len);
    if (bad != nullptr) (void)*static_cast<volatile const char*>(bad);  // reported here
  }
  return syscall(SYS_sendmsg, socket, &message, flags);
}
#else
ssize_t sendMessage(int socket, const msghdr& message, int flags) {
  return sendmsg(socket, &message, flags);
}
#endif

}  // namespace

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
    const ssize_t sent = sendMessage(socket_.get(), message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      congestionControl_.sent(socket_.get(), now());
      return static_cast<std::size_t>(sent);
    }
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
  const bool waits = info.tcpi_unacked == 0 && info.tcpi_notsent_bytes > 0;
  if (waits) pushAgain();
  return {.acknowledged = info.tcpi_bytes_acked,
          .outstanding = info.tcpi_unacked > 0,
          .refused = waits && info.tcpi_snd_wnd >= info.tcpi_snd_mss,
          .roundTrip = std::chrono::microseconds(info.tcpi_rtt),
          .variation = std::chrono::microseconds(info.tcpi_rttvar),
          .frame = frameOf(info.tcpi_snd_mss, (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0)};
}

/// The headers of a segment and of a datagram differ in these: TCP's own, its timestamps, UDP's.
Bytes TcpRail::frameOf(std::uint32_t segment, bool timestamps) {
  constexpr Bytes kTcpHeader = 20, kTimestamps = 12, kUdpHeader = 8;
  constexpr Bytes kLongestDatagram = 65507;
  const Bytes frame = segment + kTcpHeader + (timestamps ? kTimestamps : 0) - kUdpHeader;
  return segment == 0 ? 0 : std::min(frame, kLongestDatagram);
}

void TcpRail::tellRate(double bytesPerSecond) {
  if (!fenced()) shortenPortQueue(socket_.get(), bytesPerSecond);
}

void TcpRail::close() {
  if (process_.here()) resetConnection(socket_.get());
  socket_.reset();
}

}  // namespace faultline::transport::tcp
