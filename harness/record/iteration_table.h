#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace faultline::run {

/// The iterations of a run, put together from the marks of its ranks.
///
/// An iteration that is interrupted (its ranks are killed, or some are lost) and done again lasts
/// from its first begin to its final end. An interruption between two iterations, in the barrier
/// before the next one, counts for that one.
class IterationTable {
 public:
  explicit IterationTable(int ranks) : all_(ranks), ranks_(ranks) {}

  struct Row {
    int index = 0;
    TimePoint begin{};      ///< of the first rank; after an interruption, in its first attempt
    TimePoint end{};        ///< of the last rank
    Duration checkpoint{};  ///< of the slowest rank
    int endedRanks = 0;
    int attempts = 1;     ///< times that the ranks went at it; each but the last was interrupted
    TimePoint resumed{};  ///< begin of the attempt that ended; `begin` where there was only one
    bool operator==(const Row&) const = default;
  };

  void began(int iteration, TimePoint when);
  void ended(int iteration, TimePoint when, Duration checkpoint);
  /// The ranks were killed: what is open is interrupted. Between two iterations the job has waited
  /// since `waiting`, or since the last one ended, for the next one; nullopt: they do not follow
  /// each other. Returns the row that was open, if any.
  std::optional<Row> cutOff(std::optional<TimePoint> waiting);

  /// So many ranks are left, and go on at `when` from the begin of iteration `next`: an earlier one
  /// that not all had ended was done then, and one that was open begins again. Between two
  /// iterations the job has waited since `waiting`, as with cutOff.
  void shrunk(int ranks, int next, TimePoint waiting, TimePoint when);
  /// The job is over, and did all it had to: what it waited for after its last iteration counts for
  /// that one.
  void finished();

  /// Whether this one has begun and has not ended on all ranks.
  bool isOpen(int iteration) const { return open_.contains(iteration); }
  /// The iteration that has begun and has not ended on all ranks; nullopt between iterations.
  std::optional<Row> open() const;
  /// The iteration that the job was busy with for the longest time and never ended, whether it is
  /// open or was interrupted; its `end` means nothing. nullopt: none.
  std::optional<Row> unfinished() const;
  /// Iterations that ended on all ranks, in the order of time unless they overlap; those that had
  /// ended and were done again after a restart appear again.
  const std::vector<Row>& complete() const { return complete_; }
  /// When the last of them ended; nullopt: there are none.
  std::optional<TimePoint> lastEnd() const;
  /// One behind the highest iteration that ended on all ranks.
  int next() const { return next_; }
  /// Iterations, each as much as the ranks that it was done by are of all: redone ones count once.
  double work() const;

 private:
  /// What is known of an iteration that was interrupted and has not begun again.
  struct Interrupted {
    TimePoint begin;
    int attempts = 1;
    // Its next attempt counts from here; nullopt: from its own begin.
    std::optional<TimePoint> resumed{};
  };

  void complete(const Row& row);
  Interrupted& interruptNext(TimePoint waiting);

  int all_;
  int ranks_;                  // that are left
  std::map<int, int> doneBy_;  // ranks, by iteration
  std::map<int, Row> open_;
  // Ends that were heard of before any rank's begin, which another rank may tell.
  struct Ended {
    TimePoint when;
    Duration checkpoint;
  };
  std::map<int, std::vector<Ended>> early_;
  std::map<int, Interrupted> interrupted_;
  std::vector<Row> complete_;
  int next_ = 0;
};

}  // namespace faultline::run
