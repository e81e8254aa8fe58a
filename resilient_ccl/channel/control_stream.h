#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>

#include "base/clock.h"
#include "resilient_ccl/channel/receipt.h"
#include "resilient_ccl/channel/wire.h"

namespace faultline::channel {

/// Reliable, unordered delivery of small records over lossy datagrams: each record is repeated,
/// over changing paths, until the other end's receipt names it; the other end drops repetitions.
/// Pure: no clock, no socket.
class ControlStream {
 public:
  /// Pause before the first repetition of a record; doubles each time up to kLongestPause.
  static constexpr Duration kFirstPause = 5ms;
  static constexpr Duration kLongestPause = 40ms;
  /// Numbers within the receiver's reach that only urgent records may take: a word about a rail
  /// does not wait until the grants before it have been acknowledged.
  static constexpr std::uint64_t kReserved = 16;

  /// Queues a record. An urgent one goes over every path, each time, and before those that are not.
  void send(RecordType type, std::span<const std::byte> payload, bool urgent);

  /// Calls `transmit(record, turn, urgent)` for every record that is due, and notes that it was
  /// sent. turn is `firstTurn` for the first time, and one more each time the record is repeated.
  void collect(TimePoint now, int firstTurn,
               const std::function<void(const Record&, int turn, bool urgent)>& transmit);

  /// When `collect` has something to do again; TimePoint::max() when nothing is open.
  TimePoint nextDeadline() const;

  /// The other end holds the records that `receipt` names.
  void acknowledged(const Receipt& receipt);

  /// A reliable record with this sequence number has come: true when it is new, false when it is a
  /// repetition (or nonsense) and must be dropped.
  bool accept(std::uint64_t sequence);

  /// Which of the other end's records have come; travels in every datagram.
  const Receipt& received() const { return received_; }

  /// Whether a record of this type is not acknowledged yet.
  bool awaits(RecordType type) const {
    return std::ranges::any_of(open_, [type](const Open& open) { return open.type == type; });
  }

 private:
  struct Open {
    std::uint64_t sequence = 0;  // given when it first leaves
    RecordType type;
    bool urgent;
    int attempts = 0;
    int firstTurn = 0;
    TimePoint due{};  // the epoch: at once
    std::size_t size;
    std::array<std::byte, Record::kMaxPayload> payload;
  };

  /// Whether the receiver can remember one more record of this kind.
  bool mayBegin(bool urgent) const;

  std::uint64_t nextSequence_ = 1;
  Receipt acknowledged_;
  Receipt received_;
  std::deque<Open> open_;
};

}  // namespace faultline::channel
