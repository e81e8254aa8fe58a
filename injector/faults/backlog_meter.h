#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "injector/faults/rate_meter.h"

namespace faultline::injector {

/// Measures at which rate a queue is emptied, over all the time in which something waited there.
/// Pure.
///
/// Unlike RateMeter it adds up many short times of waiting, so that a job whose backlog never lasts
/// is measured long enough. A time of waiting counts from one departure to another: a slow link
/// sends a segment of 64 KiB every 100 ms and nothing in between. What a token bucket lets through
/// at once after a pause is gone before anything waits, and so before the first departure counts.
class BacklogMeter {
 public:
  /// `enough`: the shortest time of waiting, all together, that is told of.
  explicit BacklogMeter(Duration enough) : enough_(enough) {}

  void observe(TimePoint now, std::uint64_t sent_bytes, Bytes backlog) {
    const bool waits = backlog > 0;
    if (waits && waits_ && sent_bytes != latest_) {
      end_ = Mark{now, sent_bytes};
      if (!begin_) begin_ = end_;
    }
    if (!waits) close();
    waits_ = waits;
    latest_ = sent_bytes;
  }

  /// Nothing until it is long enough; then of all of it so far.
  std::optional<MeasuredRate> measured() const {
    constexpr double kBitsPerByte = 8;
    Duration waited = waited_;
    std::uint64_t bytes = bytes_;
    if (begin_) {
      waited += end_.when - begin_->when;
      bytes += end_.bytes - begin_->bytes;
    }
    if (waited < enough_ || waited <= Duration::zero()) return std::nullopt;
    const double bits = static_cast<double>(bytes) * kBitsPerByte;
    return MeasuredRate{static_cast<BitsPerSecond>(bits / toSeconds(waited)), waited};
  }

 private:
  struct Mark {
    TimePoint when;
    std::uint64_t bytes;
  };

  void close() {
    if (!begin_) return;
    waited_ += end_.when - begin_->when;
    bytes_ += end_.bytes - begin_->bytes;
    begin_.reset();
  }

  Duration enough_;
  bool waits_ = false;         ///< when it was last looked at
  std::uint64_t latest_ = 0;   ///< that had left then
  std::optional<Mark> begin_;  ///< of this time of waiting: its first departure
  Mark end_{};                 ///< the latest
  Duration waited_{};          ///< before this time of waiting
  std::uint64_t bytes_ = 0;    ///< that left in it
};

}  // namespace faultline::injector
