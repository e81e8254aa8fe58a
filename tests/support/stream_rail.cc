#include "tests/support/stream_rail.h"

#include <algorithm>
#include <cstring>

namespace faultline::test {
namespace {

/// So long after the path is back the receiver says again what it has got, at the latest.
constexpr Duration kAcknowledgedAgain = 1ms;

}  // namespace

void StreamRail::submit(const ChunkHeader& header, const std::byte* data, const RemoteRegion&) {
  outgoing_.push_back({.header = header, .data = data, .copy = {}});
  if (!sending_) sendNext();
}

void StreamRail::sendNext() {
  sending_ = !outgoing_.empty() && !fenced_;
  if (!sending_) return;
  const Outgoing& chunk = outgoing_.front();
  const std::size_t length = chunk.header.length;
  const std::size_t piece = std::max<std::size_t>(1, length / wire_.pieces(length));
  const std::size_t rest = length - chunk.sent;
  const std::size_t count = rest < 2 * piece ? rest : piece;
  outstanding_ += count;
  schedule_(fromSeconds(count / wire_.bytesPerSecond),
            [this, count] { putOnTheWire(count, /*attempt=*/0); });
}

void StreamRail::putOnTheWire(std::size_t count, int attempt) {
  if (fenced_) return;
  if (!wire_.carriesPayload()) {
    schedule_(wire_.retransmission(attempt),
              [this, count, attempt] { putOnTheWire(count, attempt + 1); });
    return;
  }
  if (attempt > 0 && onSentAgain) onSentAgain();
  schedule_(2 * wire_.latency,
            [this, count] { acknowledge(count, fromSeconds(count / wire_.bytesPerSecond)); });
  Outgoing& chunk = outgoing_.front();
  const std::span<const std::byte> bytes(chunk.data + chunk.sent, count);
  if (onRead) onRead(bytes);
  schedule_(wire_.latency,
            [this, piece = Piece{.header = chunk.header,
                                 .begin = chunk.sent,
                                 .bytes = {bytes.begin(), bytes.end()}}] { deliver(piece); });
  chunk.sent += count;
  if (chunk.sent == chunk.header.length) outgoing_.pop_front();
  sendNext();
}

void StreamRail::acknowledge(std::size_t count, Duration wireTime) {
  if (fenced_ || peer_ == nullptr) return;
  if (!peer().wire_.carries) {
    schedule_(kAcknowledgedAgain, [this, count, wireTime] { acknowledge(count, wireTime); });
    return;
  }
  outstanding_ -= count;
  acknowledged_ += count;
  measure(wireTime);
}

bool StreamRail::detach(std::uint64_t sequence) {
  const auto found = std::ranges::find(outgoing_, sequence,
                                       [](const Outgoing& chunk) { return chunk.header.sequence; });
  if (found == outgoing_.end()) return false;
  if (found != outgoing_.begin()) {
    found->header = transport::withdrawn(found->header);
    return true;
  }
  found->copy.assign(found->data, found->data + found->header.length);
  found->data = found->copy.data();
  return false;
}

void StreamRail::deliver(Piece piece) {
  if (peer_ == nullptr) return;
  if (peer().abandoned_) {
    sink_.railFailed(rail_, errorf(Code::kUnavailable, "reset"));
    return;
  }
  peer().inbox_.push_back(std::move(piece));
  if (peer().begun_) peer().onReadable();
}

void StreamRail::begin() {
  SimRail::begin();
  if (!inbox_.empty()) onReadable();
}

void StreamRail::read() {
  while (!inbox_.empty() && !fenced_) {
    const Piece piece = std::move(inbox_.front());
    inbox_.pop_front();
    if (piece.begin == 0) {
      const Result<std::byte*> place = sink_.place(rail_, piece.header);
      if (!place.ok()) {
        sink_.railFailed(rail_, place.status());
        return;
      }
      place_ = *place;
    }
    if (place_ != nullptr && !piece.bytes.empty()) {
      std::memcpy(place_ + piece.begin, piece.bytes.data(), piece.bytes.size());
    }
    if (piece.last()) sink_.chunkArrived(rail_, piece.header);
  }
}

void StreamRail::close() {
  read();  // what the kernel has received still counts
  SimRail::close();
}

}  // namespace faultline::test
