#include "tests/support/memory_rail.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace faultline::test {

void MemoryRail::submit(const ChunkHeader& header, const std::byte* data,
                        const RemoteRegion& region) {
  outstanding_ += header.length;
  waiting_.push_back({header, data, region});
  if (!busy_) carryNext();
}

void MemoryRail::carryNext() {
  busy_ = !waiting_.empty();
  if (!busy_) return;
  const ChunkHeader header = waiting_.front().header;
  const std::byte* const data = waiting_.front().data;
  const RemoteRegion region = waiting_.front().region;
  waiting_.pop_front();
  const auto wireTime = fromSeconds(header.length / wire_.bytesPerSecond);
  const auto acknowledged = std::make_shared<std::uint32_t>(0);
  // A chunk is many packets, and the other machine acknowledges them one by one.
  const auto pieces = static_cast<std::uint32_t>(wire_.pieces(header.length));
  for (std::uint32_t piece = 1; piece < pieces; ++piece) {
    schedule_(wireTime * piece / pieces, [=, this] {
      if (!wire_.carriesPayload() || fenced_) return;
      acknowledge(header.length / pieces, *acknowledged);
      measure(wireTime / pieces);
    });
  }
  schedule_(wireTime, [this] { carryNext(); });
  schedule_(wireTime + wire_.latency, [=, this] {
    if (!wire_.carriesPayload() && wire_.lateDelivery > Duration::zero()) {
      // The write is still somewhere in the network and lands later; nobody is told. As long as
      // the connection lives, its numbering keeps such a copy from landing behind a newer one.
      // It has left the sender: only the receiver's fence stops it.
      const auto packet = std::make_shared<std::vector<std::byte>>(data, data + header.length);
      schedule_(wire_.lateDelivery, [=, this] {
        if (*acknowledged == header.length) return;
        deliver(header, packet->data(), region, /*visible=*/false);
      });
    }
    transmit(header, data, region, acknowledged, /*attempt=*/0);
  });
}

void MemoryRail::acknowledge(std::uint32_t bytes, std::uint32_t& ofChunk) {
  ofChunk += bytes;
  outstanding_ -= bytes;
  acknowledged_ += bytes;
}

void MemoryRail::transmit(const ChunkHeader& header, const std::byte* data,
                          const RemoteRegion& region,
                          const std::shared_ptr<std::uint32_t>& acknowledged, int attempt) {
  if (fenced_) return;
  if (onRead) onRead({data, header.length});
  if (wire_.carriesPayload()) {
    acknowledge(header.length - *acknowledged, *acknowledged);
    deliver(header, data, region, /*visible=*/true);
    return;
  }
  schedule_(wire_.retransmission(attempt),
            [=, this] { transmit(header, data, region, acknowledged, attempt + 1); });
}

void MemoryRail::deliver(const ChunkHeader& header, const std::byte* data,
                         const RemoteRegion& region, bool visible) {
  if ((fenced_ && visible) || peer_ == nullptr) return;
  if (peer().abandoned_ && visible) {
    sink_.railFailed(rail_, errorf(Code::kUnavailable, "reset"));
    return;
  }
  if (peer().fenced_) return;
  if (!peer().begun_) {
    schedule_(wire_.latency, [=, this] { deliver(header, data, region, visible); });
    return;
  }
  std::copy_n(data, header.length, reinterpret_cast<std::byte*>(region.address) + header.offset);
  if (visible) peer().sink_.chunkArrived(rail_, header);
}

bool MemoryRail::detach(std::uint64_t) {
  throw std::logic_error("a rail with late writes was asked to detach a chunk");
}

void MemoryRail::divert() {
  throw std::logic_error("a rail with late writes was asked to divert a chunk");
}

}  // namespace faultline::test
