#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/units.h"

namespace faultline::channel {

/// What a link has carried so far and how busy it was, all rails together. Differences between two
/// moments are what happened in between.
struct LinkLoad {
  Bytes acknowledged = 0;  ///< by the other application
  Bytes outstanding = 0;   ///< not acknowledged, now
  Duration busy{};         ///< time in which something was outstanding
  /// Time in which more was outstanding than a path's delay hides, and what was acknowledged in it:
  /// the one over the other is what the path carries, whatever the caller does in between.
  Duration loaded{};
  Bytes loadedBytes = 0;
  Bytes arrived = 0;
  bool receiving = false;     ///< a message from the other end has begun and is not complete
  std::uint64_t railsUp = 0;  ///< one bit per rail, the lowest for rail 0
  TimePoint heard{};          ///< when there was the latest sign of the other end
};

/// The sending half of LinkLoad, told of every change. Pure.
class LoadMeter {
 public:
  /// From `loadedFrom` bytes outstanding on a path counts as loaded.
  explicit LoadMeter(Bytes loadedFrom) : loadedFrom_(loadedFrom) {}

  /// `acknowledged` of what was outstanding has been acknowledged; now `outstanding` is.
  void update(Bytes outstanding, Bytes acknowledged, TimePoint now) {
    advance(load_, now);
    if (load_.outstanding >= loadedFrom_) load_.loadedBytes += acknowledged;
    load_.acknowledged += acknowledged;
    load_.outstanding = outstanding;
    since_ = now;
  }

  LinkLoad at(TimePoint now) const {
    LinkLoad load = load_;
    advance(load, now);
    return load;
  }

 private:
  void advance(LinkLoad& load, TimePoint now) const {
    const Duration elapsed = now - since_;
    if (load.outstanding > 0) load.busy += elapsed;
    if (load.outstanding >= loadedFrom_) load.loaded += elapsed;
  }

  Bytes loadedFrom_;
  LinkLoad load_;
  TimePoint since_{};
};

}  // namespace faultline::channel
