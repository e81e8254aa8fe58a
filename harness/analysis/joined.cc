#include "harness/analysis/joined.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/analysis/summary.h"

namespace faultline::run {
namespace {

using reports::ScenarioResult;

reports::Json identityOf(const ScenarioResult& result) {
  reports::Json scenario = result.scenario;
  for (const char* const key : {"repeat", "seed"}) scenario.erase(key);
  const reports::Environment& where = result.environment;
  return {std::move(scenario), where.git, where.kernel, where.cpu};
}

/// Of two pieces' verdicts, in the order in which they decide an exit code.
reports::Verdict worse(reports::Verdict one, reports::Verdict other) {
  using enum reports::Verdict;
  for (const reports::Verdict verdict : {kError, kFail, kInvalid}) {
    if (one == verdict || other == verdict) return verdict;
  }
  return kPass;
}

void append(ScenarioResult& whole, ScenarioResult&& piece) {
  std::ranges::move(piece.runs, std::back_inserter(whole.runs));
  const std::size_t lines = std::min(whole.expectations.size(), piece.expectations.size());
  for (std::size_t i = 0; i < lines; ++i) {
    reports::Expectation& line = whole.expectations[i];
    const reports::Expectation& other = piece.expectations[i];
    const bool fails = !other.pass && !other.is_void;
    if (line.pass || (line.is_void && fails)) line = std::move(piece.expectations[i]);
  }
  whole.verdict = worse(whole.verdict, piece.verdict);
  whole.interrupted |= piece.interrupted;
}

}  // namespace

std::vector<ScenarioResult> joined(std::vector<ScenarioResult> results) {
  std::vector<ScenarioResult> wholes;
  for (ScenarioResult& piece : results) {
    const auto same = std::ranges::find(wholes, identityOf(piece), identityOf);
    if (same == wholes.end()) {
      wholes.push_back(std::move(piece));
    } else {
      append(*same, std::move(piece));
    }
  }
  for (ScenarioResult& whole : wholes) {
    for (reports::Summary& row : whole.summary) {
      row.failover_pause_ms = pausesOf(whole.runs, row.strategy);
    }
  }
  return wholes;
}

}  // namespace faultline::run
