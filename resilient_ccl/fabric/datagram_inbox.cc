#include "resilient_ccl/fabric/datagram_inbox.h"

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "base/system_calls.h"
#include "resilient_ccl/auth/sealed_path.h"
#include "resilient_ccl/channel/wire.h"

namespace faultline::fabric {
namespace {

/// As many datagrams as wait, one by one where a filter of a container forbids recvmmsg.
int receiveSome(int fd, std::span<mmsghdr> messages) {
  static std::atomic<bool> single{false};
  if (!single.load(std::memory_order_relaxed)) {
    const int count = recvmmsg(fd, messages.data(), static_cast<unsigned>(messages.size()),
                               MSG_DONTWAIT, nullptr);
    if (count >= 0 || (errno != ENOSYS && errno != EPERM && errno != EACCES)) return count;
    single.store(true, std::memory_order_relaxed);
  }
  int count = 0;
  for (mmsghdr& message : messages) {
    countSystemCall();
    const ssize_t got = recvmsg(fd, &message.msg_hdr, MSG_DONTWAIT);
    if (got < 0) break;
    message.msg_len = static_cast<unsigned>(got);
    ++count;
  }
  return count;
}

}  // namespace

void readDatagrams(int fd, const std::function<void(std::span<const std::byte>)>& take) {
  constexpr int kMostBatchesPerTurn = 16;
  constexpr int kBatch = 16;
  std::array<std::array<std::byte, channel::kMaxDatagram + sizeof(auth::Seal) + 1>, kBatch> buffers;
  std::array<iovec, kBatch> pieces;
  std::array<mmsghdr, kBatch> messages{};
  for (int i = 0; i < kBatch; ++i) {
    pieces[i] = {buffers[i].data(), buffers[i].size()};
    messages[i].msg_hdr.msg_iov = &pieces[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  for (int turn = 0; turn < kMostBatchesPerTurn; ++turn) {
    countSystemCall();
    const int count = receiveSome(fd, messages);
    for (int i = 0; i < count; ++i) take({buffers[i].data(), messages[i].msg_len});
    if (count < kBatch) return;
  }
}

}  // namespace faultline::fabric
