#pragma once

#include <optional>

#include "base/clock.h"

namespace faultline::site {

/// How another machine's monotonic clock relates to ours, from questions that it answered (F.
/// Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989). An answer was
/// given between our question and its arrival, so that half of the time between the two bounds the
/// error; the shortest of late is kept, and its error grows with the time since, as clocks drift
/// apart. Pure.
class ClockOffset {
 public:
  /// Two clocks that are disciplined, each by at most 500 ppm (adjtimex(2)).
  static constexpr double kMostDrift = 1e-3;

  /// That of a process of this machine, whose clock is ours: known, and not estimated.
  static ClockOffset same();

  /// It answered with `theirs`; question and answer were at `asked` and `heard` of our clock.
  void add(TimePoint asked, TimePoint theirs, TimePoint heard);

  struct Estimate {
    Duration offset{};  ///< theirs - ours
    Duration error{};   ///< at most
  };
  /// At this moment of our clock; nullopt before the first answer.
  std::optional<Estimate> at(TimePoint ours) const;

  /// A moment of theirs, heard of at `heard` of our clock and so not later. Before the first answer
  /// that is all that is known.
  TimePoint ours(TimePoint theirs, TimePoint heard) const;

 private:
  std::optional<Estimate> best_;
  TimePoint bestAt_{};  // of our clock
  double drift_ = kMostDrift;
};

}  // namespace faultline::site
