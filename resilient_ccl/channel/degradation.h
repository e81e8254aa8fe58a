#pragma once

#include "base/clock.h"
#include "base/units.h"

namespace faultline::channel {

/// Whether a rail that lives is far slower than the others: a gray failure, to be told to people
/// and to those who choose schedules, never a reason to stop. Pure.
///
/// What the rail delivers is summed up against what the fastest other would have delivered in the
/// same time (a cumulative sum, Page 1954): a little less for long counts as much as a lot less for
/// a moment, and a moment that was better than asked takes back what came before it.
///
/// Times are on the clock of what was *heard* of the peer: it stands still while the peer, or this
/// process, does, so that neither makes a rail slow.
class Degradation {
 public:
  /// A rail at half of the others' rate is found; what rates differ by from one moment to the next
  /// is not.
  static constexpr double kShare = 2.0 / 3;
  /// It is over above this share.
  static constexpr double kHealedShare = 0.8;
  /// So much must have been lost, as time of the fastest other, or gained to be healed: 150 ms of
  /// work at half of the rate, 40 ms at next to none. And the least that can be acknowledged, which
  /// may be just about to be.
  static constexpr Duration kProof = 25ms;
  /// After an idle time the first acknowledgement comes a network delay and a wake-up late: it, and
  /// so much of the time before it, says nothing.
  static constexpr Duration kFirstDelay = 10ms;
  /// Time of work after which what was delivered weighs 1/e in `rate`: what slows all rails at once
  /// lowers what they are compared with before it makes one of them slow. At least so many
  /// acknowledgements, on a network on which one takes long.
  static constexpr Duration kMemory = 30ms;
  static constexpr int kLeastMemory = 4;
  /// Weight that a rail must have, of what it did since it came up, before others are compared with
  /// it, some 20 ms of work: a port that was idle passes its burst first, at many times its rate.
  static constexpr Duration kLeastWork = 15ms;

  /// Something is outstanding from now on, after nothing was.
  void begin(Duration heard);
  /// `bytes` of it have been acknowledged; `observe` judges them.
  void delivered(Bytes bytes) { delivered_ += bytes; }
  /// The time up to now says nothing: the path was in doubt.
  void forgive(Duration heard) {
    if (busy_) begin(heard);
  }

  struct Moment {
    Duration heard{};
    double reference = 0;  ///< bytes per second of the fastest other rail; 0: not known
    Bytes granule = 0;     ///< what is acknowledged together
    bool idle = false;     ///< nothing is outstanding any more
    /// The path is known to be whole: that nothing is acknowledged is the rail's own slowness.
    bool silenceProves = false;
  };
  /// After everything that has come in with a datagram. True when the state has changed.
  bool observe(const Moment& moment);

  /// Whether `observe` has anything to judge.
  bool watched() const { return busy_; }
  bool degraded() const { return degraded_; }
  /// Of the latest change: what the rail carried, as a share of the fastest other.
  double share() const { return share_; }
  /// What it carries, in bytes per second, lower the longer nothing has been acknowledged. 0: not
  /// known, for want of work.
  double rate(Duration heard) const;
  /// Nothing has ever been acknowledged but what came first after idleness.
  bool unmeasured() const { return seconds_ <= 0; }

 private:
  /// Since the sum was last zero; all as seconds.
  struct Sum {
    double due = 0;      ///< what is asked for, or more than is asked for
    double carried = 0;  ///< time of the fastest other for what was delivered
    double elapsed = 0;
  };
  bool change(double carried, double elapsed);
  double pace() const;    // seconds from one acknowledgement to the next
  double memory() const;  // seconds

  bool degraded_ = false;
  double share_ = 1;
  bool busy_ = false;
  bool first_ = false;  // nothing acknowledged since `begin`
  Duration since_{};    // up to here all has been counted
  Bytes delivered_ = 0;
  Sum sum_;
  double bytes_ = 0, seconds_ = 0;  // fading
  Bytes granule_ = 0;
};

}  // namespace faultline::channel
