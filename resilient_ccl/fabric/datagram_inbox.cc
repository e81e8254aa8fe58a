#include "resilient_ccl/fabric/datagram_inbox.h"

#include <sys/socket.h>

#include <array>

#include "base/system_calls.h"
#include "resilient_ccl/auth/sealed_path.h"
#include "resilient_ccl/channel/wire.h"

namespace faultline::fabric {

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
    const int count = recvmmsg(fd, messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < count; ++i) take({buffers[i].data(), messages[i].msg_len});
    if (count < kBatch) return;
  }
}

}  // namespace faultline::fabric
