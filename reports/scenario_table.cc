#include "reports/scenario_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/text.h"
#include "reports/verdict_text.h"

namespace faultline::reports {
namespace {

constexpr const char* kHead =
    "| scenario | strategy | faults | found | pause ms p50 / p99 | aim | verdict |\n"
    "|---|---|---|---|---|---|---|\n";

void addTo(std::string& list, const std::string& entry) {
  list += (list.empty() ? "" : ", ") + entry;
}

/// Text of a result inside a cell: on one line, and no end of the cell.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char character : cleanText(text)) {
    if (character == '|') safe += '\\';
    safe += character == '\n' || character == '\r' ? ' ' : character;
  }
  return safe;
}

std::size_t faultsOf(const ScenarioResult& result, const std::string& strategy) {
  std::size_t faults = 0;
  for (const Run& run : result.runs) {
    if (run.strategy == strategy) faults += run.faults.size();
  }
  return faults;
}

/// "path (outgoing) 58, rail 2": what was found broken, the most frequent first.
std::string foundBy(const ScenarioResult& result, const std::string& strategy) {
  std::map<std::string, int> counts;
  for (const Run& run : result.runs) {
    if (run.strategy != strategy) continue;
    for (const Failover& failover : run.failovers) {
      const bool directed = failover.cause == "path" && failover.dead_direction != "unknown";
      ++counts[directed ? fmt::format("path ({})", failover.dead_direction) : failover.cause];
    }
  }
  std::vector<std::pair<std::string, int>> causes(counts.begin(), counts.end());
  std::ranges::stable_sort(causes, std::ranges::greater(), &std::pair<std::string, int>::second);
  std::string text;
  for (const auto& [cause, count] : causes) addTo(text, fmt::format("{} {}", cause, count));
  return text.empty() ? "no failover" : text;
}

/// What is expected of the strategy's pauses: "p50 <= 5, max <= 20 (fails)", and of the time after
/// an outage of all links: "after_return_ms <= 50".
std::string aimOf(const ScenarioResult& result, const std::string& strategy) {
  const std::string pause = strategy + ".failover_pause_ms.";
  const std::string failovers = strategy + ".failovers.";
  std::string text;
  for (const Expectation& expectation : result.expectations) {
    const bool afterReturn = expectation.text.starts_with(failovers + "after_return_ms");
    if (!afterReturn && !expectation.text.starts_with(pause)) continue;
    std::string aim = expectation.text.substr((afterReturn ? failovers : pause).size());
    if (!expectation.pass) aim += expectation.is_void ? " (void)" : " (fails)";
    addTo(text, aim);
  }
  return text.empty() ? "-" : text;
}

std::string verdictOf(const ScenarioResult& result) {
  const auto failing = std::ranges::count_if(
      result.expectations, [](const Expectation& line) { return !line.pass && !line.is_void; });
  if (failing == 0) return nameOf(result.verdict);
  return fmt::format("{}: {} of {}", nameOf(result.verdict), failing, result.expectations.size());
}

}  // namespace

std::string scenarioTable(std::span<const ScenarioResult> results) {
  std::string text = kHead;
  for (const ScenarioResult& result : results) {
    for (const Summary& row : result.summary) {
      const std::size_t faults = faultsOf(result, row.strategy);
      if (faults == 0) continue;
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", cell(scenarioName(result)),
                          cell(row.strategy), faults, cell(foundBy(result, row.strategy)),
                          spreadText(row.failover_pause_ms.value_or(Percentiles{})),
                          cell(aimOf(result, row.strategy)), verdictOf(result));
    }
  }
  return text;
}

}  // namespace faultline::reports
