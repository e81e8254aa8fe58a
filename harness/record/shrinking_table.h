#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "harness/record/iteration_table.h"
#include "wire/rank.h"

namespace faultline::run {

/// The iterations of a job whose ranks may go on with those that are left (`shrunk`). What a rank
/// tells belongs to the job of which it was a rank then, in whatever order ranks are heard.
class ShrinkingTable {
 public:
  explicit ShrinkingTable(int ranks) : live_(ranks) {}

  void began(int rank, int iteration, TimePoint when);
  void ended(int rank, int iteration, TimePoint when, Duration checkpoint);
  /// `fault`: what the job has lost its ranks by.
  void shrunk(int rank, const wire::Shrunk& message, std::optional<TimePoint> fault);

  /// What is known by now, put together as it was heard.
  const IterationTable& live() const { return live_; }

  /// That a job goes on with fewer ranks, as all of them have told it.
  struct Shrink {
    std::vector<int> ranks;            ///< that are left
    int iteration = 0;                 ///< with which they go on
    TimePoint noticed{};               ///< by the first
    TimePoint resumed{};               ///< by the last
    std::optional<TimePoint> fault{};  ///< as the first to notice has it
  };
  /// All ranks have told what they had to, as they have ended: live() is right from now on.
  /// Returns the shrinks since the last call.
  std::vector<Shrink> settle();
  /// To be changed only when it is settled.
  IterationTable& settled() { return live_; }

 private:
  struct Mark {
    int iteration;
    TimePoint when;
    std::optional<Duration> checkpoint;  // of an end; none: it is a begin
  };
  struct Job {
    Shrink shrink;
    std::vector<Mark> marks;
  };
  static void add(IterationTable& table, const Mark& mark);
  void add(int rank, const Mark& mark);

  IterationTable live_;
  // Once a rank has told that there are fewer of them:
  std::optional<IterationTable> whole_;      // what all of them did
  std::map<int, int> left_;                  // by rank, how many are left as it has told
  std::map<int, Job, std::greater<>> jobs_;  // by the number of ranks that are left
};

}  // namespace faultline::run
