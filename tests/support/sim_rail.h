#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "base/clock.h"
#include "resilient_ccl/transport/rail.h"

namespace faultline::test {

using transport::ChunkHeader;
using transport::RemoteRegion;

/// Runs `action` at a time of the simulated clock.
using Schedule = std::function<void(Duration delay, std::function<void()> action)>;

/// One direction of a rail's wire.
struct Wire {
  Duration latency{};
  double bytesPerSecond = 100e6;
  bool carries = true;                                     ///< false: a black hole
  Bytes frame = 0;                                         ///< Delivery::frame of the rail
  Bytes longestFrame = std::numeric_limits<Bytes>::max();  ///< that gets through
  bool refuses = false;     ///< what is longer stays at the sender: Delivery::refused
  Duration lateDelivery{};  ///< rails with late writes: of chunks under way when the wire died
  Duration fenceTime = 100us;
  bool backsOff = false;  ///< waits twice as long each time before it sends again what was lost

  bool carriesPayload() const { return carries && frame <= longestFrame; }

  /// In how many pieces the wire takes so many bytes: at least two, and one every two milliseconds.
  std::size_t pieces(std::size_t bytes) const {
    const auto steps = static_cast<std::size_t>(fromSeconds(bytes / bytesPerSecond) / 2ms);
    return std::clamp<std::size_t>(steps, 2, 64);
  }

  /// A reliable transport tries again until the wire is back or somebody fences it.
  Duration retransmission(int attempt) const { return backsOff ? 200ms * (1 << attempt) : 5ms; }
};

/// One end of a rail under the simulated clock.
class SimRail : public transport::Rail {
 public:
  /// `wire` is the direction from this end to its peer; shared with the test that breaks it.
  SimRail(int rail, Wire& wire, transport::RailSink& sink, Schedule schedule)
      : rail_(rail), wire_(wire), sink_(sink), schedule_(std::move(schedule)) {}

  void connect(SimRail* peer) { peer_ = peer; }

  transport::Delivery delivery() const override {
    const bool refused = wire_.refuses && !wire_.carriesPayload();
    return {.acknowledged = acknowledged_,
            .outstanding = outstanding_ > 0 && !refused,
            .refused = outstanding_ > 0 && refused,
            .roundTrip = roundTrip_,
            .variation = variation_,
            .frame = wire_.frame};
  }
  void fence() override {
    if (fencing_) return;
    fencing_ = true;
    schedule_(wire_.fenceTime, [this] {
      if (onFenceDue) onFenceDue();
    });
  }
  bool fenced() const override { return fenced_; }

  /// The fence takes effect.
  virtual void close() { fenced_ = true; }
  /// This end's process knows of the connection: what came in before waits for it.
  virtual void begin() { begun_ = true; }
  /// This end's process never got the connection.
  void abandon() { fenced_ = abandoned_ = true; }

  /// Something has come that `read` takes in.
  virtual void read() {}
  std::function<void()> onReadable;
  /// What was lost is on the wire now: its timer has expired.
  std::function<void()> onSentAgain;
  /// The time of the fence is over: `close` is to be called.
  std::function<void()> onFenceDue;
  /// Called with every piece of the sender's memory that the rail reads.
  std::function<void(std::span<const std::byte>)> onRead;

 protected:
  /// A piece was acknowledged. Two are under way as a rule, the first of them on the wire: the
  /// second has waited for it. What is lost is of no use for the estimate, which is that of RFC
  /// 6298.
  void measure(Duration wireTime) {
    const Duration sample = std::exchange(lastWireTime_, wireTime) + wireTime + 2 * wire_.latency;
    const bool first = roundTrip_ == Duration::zero();
    variation_ = first ? sample / 2 : (3 * variation_ + std::chrono::abs(roundTrip_ - sample)) / 4;
    roundTrip_ = first ? sample : (7 * roundTrip_ + sample) / 8;
  }

  int rail_;
  Wire& wire_;
  transport::RailSink& sink_;
  Schedule schedule_;
  SimRail* peer_ = nullptr;
  std::uint64_t acknowledged_ = 0;  // bytes that the wire has carried, as far as this end knows
  std::uint64_t outstanding_ = 0;   // bytes for which it has been asked and has not
  Duration roundTrip_{};
  Duration variation_{};
  Duration lastWireTime_{};  // of the latest piece that was acknowledged
  bool begun_ = false;
  bool fencing_ = false;
  bool fenced_ = false;
  bool abandoned_ = false;
};

}  // namespace faultline::test
