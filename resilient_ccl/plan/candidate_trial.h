#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace faultline::plan {

/// Finds which of the candidates for one size is really the fastest, by using them: a model of
/// latency, bandwidth and messages does not know processors, shapers and collisions. For one size
/// under one health, at the rank that decides. Pure: told of every call, it says what the next ones
/// should use.
///
/// Candidates take turns of some calls each, the cheapest by the model first; those that cannot be
/// the best any more have no further ones. The one that is fastest in the end is kept. What trying
/// costs, against always using the fastest known, is bounded: when it is spent, the fastest so far
/// is kept until calls have earned more of it.
class CandidateTrial {
 public:
  /// Calls of a turn that count. The first one of each turn does not: its ranks begin with the
  /// agreement on its plan.
  static constexpr int kTurn = 4;
  /// What so many calls of a candidate took is remembered, the latest, and is enough to judge it.
  static constexpr std::size_t kMostCalls = 48;
  /// A candidate can win if the model gives it at most so much more than the best one was measured
  /// to take. Where bandwidth decides, the model is about right: if it says a tenth too much, what
  /// is not tried for this would win less than 5 %. Where latency does, it is not.
  static constexpr double kModelError = 1.05;
  static constexpr double kSmallModelError = 10;
  /// Latency decides when the bandwidth term is less than this share of what the model says; so do
  /// other things where a call is this much faster than the bound: what shapers let pass at once.
  /// They save up some ms (256 KiB at 200 Mbit/s: 10), which is no twentieth of a call beyond
  /// kNoBurst: one that is that much faster has ports better than was thought.
  static constexpr double kSmallShare = 0.8;
  static constexpr double kBurst = 0.95;
  static constexpr double kNoBurst = 0.3;  // seconds
  /// Within this of the bound none can be better by more: nothing else is tried, where a call is
  /// long by the bound. Shorter ones cost little to try, and one that sends in another rhythm may
  /// be faster than the bound: shapers let pass at once what they saved up in its pauses.
  static constexpr double kGoodEnough = 1.05;
  static constexpr double kLong = 0.05;  // seconds
  /// What is faster so is it by what was saved up, and by no more: a short call can win if the
  /// model gives it at most so much more time, unless latency decides.
  static constexpr double kSavedUp = 0.01;  // seconds
  /// A turn ends early when its calls, two at least, are all slower than the best by more than what
  /// matters (kAlike) and what its median may be off by; and the candidate is out with it when they
  /// take this much longer.
  static constexpr double kHopeless = 1.5;
  /// And at once when the first call takes so many times as long.
  static constexpr double kAbsurd = 10;
  /// Calls that tell what the model is off by.
  static constexpr std::size_t kTelling = 2;
  /// Medians are known to so many times their standard error, and never better than to
  /// `kLeastError` of themselves.
  static constexpr double kConfidence = 2.5;
  static constexpr double kLeastError = 0.01;
  /// Candidates that differ by less, at most, are equally good; the one that is in use is kept.
  static constexpr double kAlike = 0.04;
  /// What trying may cost: so many calls of the best, and a share of the time of all calls.
  static constexpr double kAllowedCalls = 100;
  static constexpr double kAllowedShare = 0.01;
  /// All is tried again after so long, and when that has cost less than the share.
  static constexpr Duration kPause = 60s;

  /// `predicted`: seconds of each candidate by the model, the first of which is in use; `bound`:
  /// the bandwidth term of the best possible. With one candidate there is nothing to try.
  CandidateTrial(const std::vector<double>& predicted, double bound);

  /// A call that used this candidate has taken so long. In the order of the calls.
  void ended(std::size_t candidate, double seconds, TimePoint now);

  /// The candidate to use from now on.
  std::size_t wanted() const { return wanted_; }
  /// Nothing is being tried; `wanted` is the best that is known.
  bool settled() const { return settled_; }

  /// Times by which the quickest call of the best candidate took longer than the model says: what
  /// the model's bandwidth is off by. Nothing where the model leaves out too much to say that, or
  /// not enough calls counted.
  std::optional<double> overModel() const;

 private:
  struct Option {
    double predicted = 0;
    std::vector<double> calls;  // seconds, the latest at `next`
    std::size_t next = 0;
    double median = 0;
    double error = 0;         // of the median
    double quickest = 0;      // of all calls that counted, whatever is forgotten...
    std::size_t counted = 0;  // ... of so many
    bool out = false;

    bool measured() const { return !calls.empty(); }
    bool enough() const { return calls.size() >= kMostCalls; }
    void add(double seconds);
    void judge();
  };

  void decide(TimePoint now);
  std::size_t best() const;
  bool goodEnough(const Option& best) const;
  bool latencyDecides() const;
  bool mayWin(const Option& option, double best) const;
  void dropLosers(const Option& best);
  bool alike(const Option& best) const;
  std::size_t nextTurn(const Option& best) const;
  void settle(std::size_t best, bool done, TimePoint now);
  void begin(std::size_t candidate);
  void tryAgain();

  std::vector<Option> options_;
  const double bound_;
  std::size_t wanted_ = 0;
  std::size_t kept_ = 0;  // what was in use when the tries began
  bool settled_ = false;
  bool done_ = false;  // settled for good, not for want of allowance
  TimePoint settledAt_{};
  std::size_t last_;     // candidate of the latest call
  int callsOfTurn_ = 0;  // that count
  double fastestOfTurn_ = 0;
  double all_ = 0;    // seconds of all calls
  double spent_ = 0;  // of those, beyond what the best takes
};

}  // namespace faultline::plan
