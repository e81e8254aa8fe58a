#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/units.h"

namespace faultline::injector {

/// Judges by a port's counter of sent bytes whether a limit has slowed it down: it was faster than
/// the limit, under load, right before, and is not faster now. Without load there is no answer.
/// Pure.
class RateChange {
 public:
  /// `limit` holds for each of `classes` traffic classes; which of them carry RDMA is not known.
  explicit RateChange(BitsPerSecond limit) : limit_(limit) {}

  /// The port's state when the limit was about to be set, and some time before that.
  void setBefore(Duration elapsed, std::uint64_t bytes) { before_ = rate(elapsed, bytes); }
  /// After the limit was set.
  void observe(TimePoint now, std::uint64_t bytes);
  /// Forgets what was seen after the limit was set.
  void restart() {
    start_.reset();
    during_.reset();
  }

  bool proven() const;
  /// It is proven to be slower, and so much below the limit that something else may be why.
  bool onlySlower() const;
  BitsPerSecond before() const { return before_; }
  /// Nothing until a window is complete.
  std::optional<BitsPerSecond> during() const { return during_; }

 private:
  static BitsPerSecond rate(Duration elapsed, std::uint64_t bytes);
  struct Mark {
    TimePoint when;
    std::uint64_t bytes;
  };
  BitsPerSecond limit_;
  BitsPerSecond before_ = 0;
  std::optional<Mark> start_;
  std::optional<BitsPerSecond> during_;
};

}  // namespace faultline::injector
