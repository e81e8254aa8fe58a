#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/result.h"

namespace faultline::reports {

/// What the runs of one strategy add up to.
struct StrategyTally {
  std::string strategy;
  int runs = 0;
  int ok = 0;
  int failed = 0;
  int hung = 0;
  int invalid = 0;
  int failovers = 0;
  int restarts = 0;
  int lost_iterations = 0;
  std::int64_t wrong_elements = 0;
  std::int64_t checked_elements = 0;
  double longest_pause_ms = 0;  ///< 0 when there was no failover
};

/// One tally per strategy: those of the summary in its order, then the rest as they appear.
std::vector<StrategyTally> tallyByStrategy(const ScenarioResult& result);

/// The sum over all strategies; `strategy` is empty.
StrategyTally tallyAll(const ScenarioResult& result);

/// "3 ok", or "2 ok, 1 hung": what the runs ended as, without the zeros; "-" for no runs.
std::string statusWords(const StrategyTally& tally);

}  // namespace faultline::reports
