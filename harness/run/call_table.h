#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "harness/run/settled_calls.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// The calls of a sweep, put together from what its ranks say. Of other workloads it has no rows.
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

  /// A row for each cell of which some call has ended on all ranks, in the order of the sweep. Its
  /// times are those of the calls that count (countedOf).
  std::vector<reports::CollectiveRow> rows(const CallFates& fates = {}) const;

 private:
  struct Call {
    int endedRanks = 0;
    bool unfinished = false;
    double ms = 0;  ///< of the slowest rank
    std::int64_t checked = 0;
    std::int64_t wrong = 0;
  };

  const int ranks_;
  const int callsPerCell_;
  std::vector<scenario::SweepCell> cells_;
  std::map<int, Call> calls_;  ///< by iteration
};

}  // namespace faultline::run
