#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "harness/scenario/scenario.h"

namespace faultline::run {

/// The calls of a sweep, put together from what its ranks say. Of workloads without cells it has
/// none.
class CallTable {
 public:
  explicit CallTable(const scenario::Scenario& scenario);

  /// A rank has ended its call `iteration`, which took it `ms`.
  void ended(int iteration, double ms, std::int64_t checked, std::int64_t wrong);

  /// The ranks were killed: calls that some have not ended will be made again.
  void cutOff();

  /// The call `iteration` was interrupted and made again, which took `ms` in all.
  void interrupted(int iteration, double ms);

  /// The run ended in the call `iteration`, which had taken `ms`: its time counts, as the least
  /// that it would have taken.
  void unfinished(int iteration, double ms);

  struct Call {
    int endedRanks = 0;
    bool unfinished = false;
    double ms = 0;  ///< of the slowest rank
    std::int64_t checked = 0;
    std::int64_t wrong = 0;
  };
  /// By iteration.
  const std::map<int, Call>& calls() const { return calls_; }
  int ranks() const { return ranks_; }
  int callsPerCell() const { return callsPerCell_; }
  const std::vector<scenario::SweepCell>& cells() const { return cells_; }

 private:
  int ranks_;
  int callsPerCell_;
  std::vector<scenario::SweepCell> cells_;
  std::map<int, Call> calls_;  ///< by iteration
};

}  // namespace faultline::run
