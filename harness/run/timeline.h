#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "harness/scenario/scenario.h"

/// When faults are due, and whether they hit: pure logic over iteration marks and byte counters.
namespace faultline::run {

/// Says when one fault of the scenario is due.
///
/// `during` counts progress as bytes of the target node's rails (both directions) since the
/// iteration began, relative to the same bytes in this run's warm-up iterations. It therefore works
/// for programs that are not ours: all it needs are marks and interface counters.
class FaultTrigger {
 public:
  explicit FaultTrigger(const scenario::Fault& fault) : fault_(fault) {}

  /// Bytes that the target node's rails moved in one warm-up iteration.
  void warmupIteration(std::uint64_t bytes) { warmup_.push_back(bytes); }
  /// The first rank has begun `iteration`; `bytes` is the target's counter at that moment.
  void iterationBegan(int iteration, std::uint64_t bytes);
  /// t = 0: all ranks have passed the start barrier.
  void started(TimePoint when) { start_ = when; }

  /// Whether the fault is due now; true once. `bytes`: the target's counter now.
  bool due(TimePoint now, std::uint64_t bytes);

  /// Progress in [0, ...) of the watched iteration; nullopt before it began, or without `during`.
  std::optional<double> progress(std::uint64_t bytes) const;
  /// Median bytes of a warm-up iteration; 0 when there was none.
  std::uint64_t bytesPerIteration() const;

 private:
  const scenario::Fault fault_;
  std::vector<std::uint64_t> warmup_;
  std::optional<TimePoint> start_;
  std::optional<std::uint64_t> mark_;
  bool fired_ = false;
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

  void othersCounter(std::uint64_t bytes) { othersMoved_ = othersMoved_ || bytes > othersBytes_; }
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

/// The iterations of a run, put together from the marks of its ranks.
class IterationTable {
 public:
  explicit IterationTable(int ranks) : ranks_(ranks) {}

  struct Row {
    int index = 0;
    TimePoint begin{};      ///< of the first rank
    TimePoint end{};        ///< of the last rank
    Duration checkpoint{};  ///< of the slowest rank
    int endedRanks = 0;
    bool operator==(const Row&) const = default;
  };

  /// True when this is the first mark of the iteration (since the last restart).
  bool began(int iteration, TimePoint when);
  void ended(int iteration, TimePoint when, Duration checkpoint);
  /// The ranks were killed: what is open is lost. Returns the row that was open, if any.
  std::optional<Row> cutOff();

  /// The iteration that has begun and has not ended on all ranks; nullopt between iterations.
  std::optional<Row> open() const;
  /// Iterations that ended on all ranks, in the order of time; redone ones appear again.
  const std::vector<Row>& complete() const { return complete_; }
  /// One behind the highest iteration that ended on all ranks.
  int next() const { return next_; }

 private:
  int ranks_;
  std::map<int, Row> open_;
  std::vector<Row> complete_;
  int next_ = 0;
};

}  // namespace faultline::run
