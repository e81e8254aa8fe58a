#pragma once

#include <algorithm>
#include <vector>

#include "base/clock.h"

namespace faultline::channel {

/// When what has come is acknowledged, by a datagram that tells of all rails: at once, or together
/// with what comes soon. Pure.
class AcknowledgementPacing {
 public:
  /// A rail's chunks are acknowledged in pairs, as many as its least window has.
  static constexpr int kChunksTogether = 2;
  /// What waits for others does so at most so long.
  static constexpr Duration kDelay = 1ms;
  /// So many chunks of small messages count as one: far fewer than a receipt reaches.
  static constexpr int kSmallPerChunk = 8;
  /// Of another message of one chunk, where receives are posted ahead: its sender does not wait for
  /// one of those under way, but for the last one.
  static constexpr Duration kLateDelay = 200us;
  /// A third of the records with grants that may be under way.
  static constexpr int kGrantsTogether = 16;

  enum class Chunk {
    kUsual,  ///< its message is acknowledged at its end (`atOnce`)
    kLate,   ///< all of its message, which is not
    kSmall,  ///< of a message that its sender has copied
  };

  explicit AcknowledgementPacing(int rails) : waiting_(rails) {}

  void chunk(int rail, Chunk what, TimePoint now) {
    waiting_[rail] += what == Chunk::kSmall ? 1 : kSmallPerChunk;
    if (waiting_[rail] >= kChunksTogether * kSmallPerChunk) due_ = std::min(due_, now);
    due_ = std::min(due_, now + (what == Chunk::kLate ? kLateDelay : kDelay));
  }
  /// A record with grants that the peer has others of.
  void grants(TimePoint now) {
    due_ = std::min(due_, ++grants_ < kGrantsTogether ? now + kDelay : now);
  }
  void atOnce() { due_ = TimePoint::min(); }

  /// When it must go; TimePoint::max(): there is nothing.
  TimePoint due() const { return due_; }
  /// A datagram goes: it acknowledges everything.
  void sent() {
    std::ranges::fill(waiting_, 0);
    grants_ = 0;
    due_ = TimePoint::max();
  }

 private:
  std::vector<int> waiting_;  // on each rail, in parts of chunks
  int grants_ = 0;
  TimePoint due_ = TimePoint::max();
};

}  // namespace faultline::channel
