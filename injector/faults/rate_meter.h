#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/units.h"

namespace faultline::injector {

/// What a RateMeter has measured.
struct MeasuredRate {
  BitsPerSecond rate = 0;
  Duration window{};
};

/// Measures at which rate a queue is emptied, only while something waits in it: what an idle queue
/// lets through says nothing about its limit. Pure.
///
/// A window begins and ends at moments when something has just left the queue. A slow link sends a
/// segment of 64 KiB every 100 ms and nothing in between; counted from arbitrary moments, a window
/// would hold one too many or too few.
class RateMeter {
 public:
  explicit RateMeter(Duration shortest_window) : shortest_window_(shortest_window) {}

  void observe(TimePoint now, std::uint64_t sent_bytes, Bytes backlog) {
    if (backlog <= 0) {
      start_.reset();
    } else if (previous_ && *previous_ != sent_bytes) {
      moved(now, sent_bytes);
    }
    previous_ = sent_bytes;
  }

  /// Of the latest complete window.
  const std::optional<MeasuredRate>& measured() const { return measured_; }

 private:
  struct Mark {
    TimePoint when;
    std::uint64_t bytes;
  };

  void moved(TimePoint now, std::uint64_t sent_bytes) {
    if (start_ && now - start_->when < shortest_window_) return;
    if (start_) {
      constexpr double kBitsPerByte = 8;
      const Duration window = now - start_->when;
      const auto bits = static_cast<double>(sent_bytes - start_->bytes) * kBitsPerByte;
      measured_ = {static_cast<BitsPerSecond>(bits / toSeconds(window)), window};
    }
    start_ = Mark{now, sent_bytes};
  }

  Duration shortest_window_;
  std::optional<std::uint64_t> previous_;
  std::optional<Mark> start_;
  std::optional<MeasuredRate> measured_;
};

}  // namespace faultline::injector
