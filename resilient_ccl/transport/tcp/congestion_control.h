#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace faultline::transport::tcp {

/// What streams have in slow start: everybody may choose it.
inline constexpr std::string_view kInSlowStart = "reno";

/// Chooses that for a socket that is to listen (those it accepts inherit it) or to connect.
///
/// BBR, the default of some systems, sends four packets per round trip for 200 ms every 10 s to see
/// how short the path is: an iteration in which a rail did so took 1.4 times as long. What a path
/// holds is bounded by the link already.
void beginSlowStart(int fd);

/// The algorithm that streams of this process have from the end of slow start on: "cubic"; "reno"
/// where the system lets this user choose no other.
std::string streamCongestionControl();

/// Whether a stream is in slow start, of what is seen of it now and then. Pure.
///
/// That what it took for lost only came late the kernel finds out some round trips later, and goes
/// on with slow start as if nothing had been; but not if another algorithm was chosen in between.
/// Calls took 1.15 times as long where that had left a stream with a window of 200 segments.
class SlowStart {
 public:
  static constexpr Duration kSettled = 100ms;

  /// Whether that has changed and stayed so.
  bool changed(bool seen, TimePoint now) {
    if (seen == is_) {
      since_.reset();
      return false;
    }
    if (!since_) since_ = now;
    if (now - *since_ < kSettled) return false;
    is_ = seen;
    since_.reset();
    return true;
  }

 private:
  bool is_ = true;
  std::optional<TimePoint> since_;  ///< when it was first seen to be otherwise
};

/// Of one stream that is connected: "reno" in slow start, "cubic" from its end on, which gives up
/// less where something is lost, and grows faster.
///
/// Cubic ends slow start as soon as the acknowledgements of one round trip come in for longer than
/// half of the shortest round trip (HyStart): some ten us on an idle rail. Where acknowledgements
/// wait behind data that goes the other way that comes true anywhere between a tenth of the window
/// that fills the rail and all of it, and from there on the window grows by half a segment per
/// round trip, for seconds. The link's own window bounds what a long one could flood.
class CongestionControl {
 public:
  /// To be called whenever something was sent. Looks 200 times a second at most, and at once when
  /// nothing was sent for so long: after a pause the kernel begins with slow start again.
  void sent(int fd, TimePoint now);

 private:
  TimePoint looked_{};
  SlowStart slowStart_;  ///< begins as `beginSlowStart` has left the stream
  bool refused_ = false;
};

/// Of a stream that carries `bytesPerSecond` when it is full: keeps what it puts into the queue of
/// this machine's own port short. Infinity: not known, no bound.
///
/// The kernel lets it have there what it would send in a millisecond at its *pacing rate*, which is
/// 1.2 times, in slow start twice, what its window would let through. With a window much longer
/// than the rail needs that is several milliseconds, and the acknowledgements of what comes in wait
/// behind all of it: so a neighbour whose own window is shorter sends less than the rail carries
/// (docs/gpu.md, "What the measurements decided"). So the stream is paced (by
/// SO_MAX_PACING_RATE) at a rate above what the rail carries. That costs a timer for each segment,
/// also after the bound has been taken away again, which shows where cores are few. A fast rail is
/// given no bound, as the timers count there and the few megabytes that the kernel lets be there in
/// any case are not long; where it cannot be set, the queue stays as it is.
void shortenPortQueue(int fd, double bytesPerSecond);

}  // namespace faultline::transport::tcp
