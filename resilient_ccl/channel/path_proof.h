#pragma once

#include <cstdint>

#include "base/clock.h"

namespace faultline::channel {

/// Of one path from its beginning on: whether a datagram has ever passed over it, there and back.
/// A rail can be connected and still carry none: a firewall drops UDP, a reverse path filter drops
/// one direction, a route is found for one protocol only. Its control then comes late and its
/// failures are noticed late, so the path is named. Pure: no clock, no socket.
class PathProof {
 public:
  /// Pause between the rounds of probes that ask for the proof.
  static constexpr Duration kInterval = 50ms;
  /// So long it is asked for; then the usual rounds go on asking.
  static constexpr Duration kAsking = 1s;
  /// Fewer rounds than this prove no silence.
  static constexpr std::uint32_t kRounds = 4;
  /// After so long a peer that answers on no path is named, too: no other path speaks against it.
  static constexpr Duration kPatience = 800ms;

  /// The path can carry something from now on. `round`: the latest round of probes.
  void begin(TimePoint now, std::uint32_t round) {
    if (passed_ || told_) return;
    begun_ = true;
    since_ = now;
    firstRound_ = round;
  }
  /// An answer came back over it. Whether it had been named as silent.
  bool pass() {
    const bool wasTold = told_;
    passed_ = true;
    told_ = false;
    return wasTold;
  }
  void tell() { told_ = true; }

  bool passed() const { return passed_; }
  /// Named as silent, and still is.
  bool told() const { return told_; }
  /// Whether it may have to be named.
  bool waits() const { return begun_ && !passed_ && !told_; }
  /// Whether rounds of probes are to ask for it.
  bool asks(TimePoint now) const { return waits() && now - since_ < kAsking; }
  std::uint32_t firstRound() const { return firstRound_; }
  TimePoint since() const { return since_; }

 private:
  bool begun_ = false;
  bool passed_ = false;
  bool told_ = false;
  TimePoint since_{};
  std::uint32_t firstRound_ = 0;
};

}  // namespace faultline::channel
