#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "harness/scenario/scenario.h"
#include "injector/fault.h"

/// When faults are due, and whether they hit: pure logic over iteration marks and byte counters.
namespace faultline::run {

/// Says when one fault of the scenario is due, as often as it is repeated.
///
/// Repetition k is due k times `every` after the first one; with `during`, at the same progress of
/// the first iteration that begins after that moment. What waits for another fault is told when
/// that has happened.
///
/// `during` counts progress as bytes of the target node's rails (both directions) since the
/// iteration began, relative to the same bytes in this run's warm-up iterations. It therefore works
/// for programs that are not ours: all it needs are marks and interface counters.
///
/// Iterations move equally much (Likeness::kEqual), so that the first strike waits for its own and
/// is a miss when that was over before. Requests of a server do not (kOwnLengths): one of a single
/// token is over before it has moved half of what others move. There the first strike comes in the
/// first iteration, from that one on, that is not over before it has reached the progress.
class FaultTrigger {
 public:
  enum class Likeness { kEqual, kOwnLengths };
  explicit FaultTrigger(const scenario::Fault& fault, Likeness iterations = Likeness::kEqual);

  /// Bytes that the target node's rails moved in one warm-up iteration.
  void warmupIteration(std::uint64_t bytes) { warmup_.push_back(bytes); }
  /// The first rank has begun `iteration` at `when`, as is known at `seen`, when the target's
  /// counter is `bytes`. Known too late, the counter says little of the iteration: a repetition
  /// waits for the next one.
  void iterationBegan(int iteration, TimePoint when, TimePoint seen, std::uint64_t bytes);
  /// `iteration` has ended, on a rank (Likeness::kEqual) or for all that a strike could still hit
  /// (kOwnLengths), when the target's counter is `bytes`: what has not come by then and may come in
  /// another one waits for the next.
  void iterationEnded(int iteration, std::uint64_t bytes);
  /// The ranks were killed: an iteration that was watched in vain will begin again.
  void restarted() { watching_ = false; }
  /// t = 0: all ranks have passed the start barrier.
  void started(TimePoint when) { start_ = when; }

  /// What the next strike waits for besides: a mark of strike number `strike` of another fault.
  struct Awaited {
    scenario::After after;
    std::size_t strike = 0;
  };
  /// nullopt: nothing, or it has happened.
  std::optional<Awaited> awaited() const;
  /// That happened at `when`.
  void happened(TimePoint when) { awaitedAt_ = when; }

  /// When the time that it lasts begins to count, having been applied at `applied`, or at most
  /// `within` later; nullopt: not yet. Where that is long (reports::Failover::kMomentKnownMs) it
  /// counts from when the fault surely was there: the kernel, busy with other changes, has begun
  /// late, and of 250 ms of a black hole 17 were left.
  std::optional<TimePoint> lastsFrom(TimePoint applied, Duration within) const;
  /// Whether the fault is due now; true once per repetition. `bytes`: the target's counter now.
  bool due(TimePoint now, std::uint64_t bytes);

  /// How many repetitions have been due so far.
  int fired() const { return fired_; }
  /// Whether an iteration that it could strike in has begun; with `during`.
  bool began() const { return mark_.has_value(); }
  /// Whether the counter of an iteration is looked at now, until it has moved enough.
  bool watching() const { return watching_; }
  /// The iteration that is watched, or was when the fault was last due; with `during`.
  int iteration() const { return iteration_; }

  /// An iteration that was over before the first strike.
  struct TooShort {
    int iteration = 0;
    double progress = 0;  ///< reached by then
    bool operator==(const TooShort&) const = default;
  };
  /// Those that the first strike was not in, in the order of time.
  const std::vector<TooShort>& tooShort() const { return tooShort_; }

  /// Progress in [0, ...) of the watched iteration; nullopt before it began, or without `during`.
  std::optional<double> progress(std::uint64_t bytes) const;
  /// Median bytes of a warm-up iteration; 0 when there was none.
  std::uint64_t bytesPerIteration() const;

 private:
  /// What is known later does not mark the begin of an iteration.
  static constexpr Duration kPromptMark = 10ms;

  /// When repetition `fired_` may strike: counted from the first, so that delays do not add up.
  bool isTimeFor(TimePoint now) const;

  const scenario::Fault fault_;
  const Likeness iterations_;
  std::vector<TooShort> tooShort_;
  std::vector<std::uint64_t> warmup_;
  std::optional<TimePoint> start_;
  std::optional<std::uint64_t> mark_;  // at the begin of `iteration_`
  int iteration_ = 0;
  bool watching_ = false;  // the iteration, until the fault is due
  int fired_ = 0;
  TimePoint first_{};
  std::optional<TimePoint> awaitedAt_;  // by the next strike
};

/// Proof that a `during` fault hit a running iteration: progress strictly between 0 and 100 % at
/// the moment of applying, other nodes' counters moving afterwards, and the iteration ending later
/// than that on at least two ranks (on one, when there is only one).
class HitProof {
 public:
  HitProof(int iteration, double progress, TimePoint applied, std::uint64_t othersBytes, int ranks)
      : iteration_(iteration),
        progress_(progress),
        applied_(applied),
        othersBytes_(othersBytes),
        ranks_(ranks) {}

  /// So many ranks must end the iteration later, of a job of `ranks`.
  static int ranksNeeded(int ranks) { return std::min(2, ranks); }

  void othersCounter(std::uint64_t bytes) { othersMoved_ = othersMoved_ || bytes > othersBytes_; }
  bool othersMoved() const { return othersMoved_; }
  void iterationEnded(int rank, int iteration, TimePoint when);

  bool ok() const;
  int iteration() const { return iteration_; }
  double progress() const { return progress_; }
  /// In words and numbers.
  std::string detail() const;

 private:
  int iteration_;
  double progress_;
  TimePoint applied_;
  std::uint64_t othersBytes_;
  int ranks_;
  bool othersMoved_ = false;
  std::set<int> endedLater_;
  Duration lastEnd_{};
};

/// Says when a request is over for a strike: nobody, or too few, could end it later (HitProof).
/// Where prefill and decode are apart the ranks of the first are through with it long before.
class RequestEnds {
 public:
  explicit RequestEnds(int ranks) : ranks_(ranks) {}

  /// A rank is through with it; `last`: it has told the last token. True when it is over.
  bool ended(int request, bool last) {
    const int left = ranks_ - ++through_[request];
    return last || left < HitProof::ranksNeeded(ranks_);
  }
  /// The ranks were killed: requests that were open begin again.
  void restarted() { through_.clear(); }

 private:
  int ranks_;
  std::map<int, int> through_;  // ranks, by request
};

}  // namespace faultline::run
