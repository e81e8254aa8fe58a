#include "reports/tally.h"

#include <fmt/format.h>

#include <algorithm>

namespace faultline::reports {
namespace {

void add(StrategyTally& tally, const Run& run) {
  ++tally.runs;
  switch (run.status) {
    case RunStatus::kOk:
      ++tally.ok;
      break;
    case RunStatus::kFailed:
      ++tally.failed;
      break;
    case RunStatus::kHung:
      ++tally.hung;
      break;
    case RunStatus::kInvalid:
      ++tally.invalid;
      break;
  }
  tally.failovers += static_cast<int>(run.failovers.size());
  tally.restarts += static_cast<int>(run.restarts.size());
  for (const Restart& restart : run.restarts) tally.lost_iterations += restart.lost_iterations;
  for (const Failover& failover : run.failovers) {
    tally.longest_pause_ms = std::max(tally.longest_pause_ms, failover.pause_ms);
  }
  tally.wrong_elements += run.wrong_elements;
  tally.checked_elements += run.checked_elements;
}

StrategyTally& tallyOf(std::vector<StrategyTally>& tallies, const std::string& strategy) {
  const auto found = std::find_if(tallies.begin(), tallies.end(), [&](const StrategyTally& tally) {
    return tally.strategy == strategy;
  });
  if (found != tallies.end()) return *found;
  tallies.emplace_back().strategy = strategy;
  return tallies.back();
}

}  // namespace

std::vector<StrategyTally> tallyByStrategy(const ScenarioResult& result) {
  std::vector<StrategyTally> tallies;
  for (const Summary& row : result.summary) tallyOf(tallies, row.strategy);
  for (const Run& run : result.runs) add(tallyOf(tallies, run.strategy), run);
  return tallies;
}

StrategyTally tallyAll(const ScenarioResult& result) {
  StrategyTally tally;
  for (const Run& run : result.runs) add(tally, run);
  return tally;
}

std::string statusWords(const StrategyTally& tally) {
  std::string words;
  const auto append = [&](int count, const char* name) {
    if (count > 0) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, name);
  };
  append(tally.ok, "ok");
  append(tally.failed, "failed");
  append(tally.hung, "hung");
  append(tally.invalid, "invalid");
  return words.empty() ? "-" : words;
}

}  // namespace faultline::reports
