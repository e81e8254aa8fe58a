#include "harness/history/trend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/analysis/compare_results.h"
#include "harness/stats/next_value.h"
#include "harness/stats/quantile.h"

namespace faultline::history {
namespace {

using reports::Change;
using reports::Comparison;
using Key = std::pair<std::string, std::string>;
using Results = std::vector<const StoredResult*>;

/// A change that is told however few nights there are, or however much they differ: half as much
/// again, and of percentages as many points. Half the speed is more than that.
constexpr double kPlainRatio = 1.5;
constexpr double kPlainPoints = 50;

const std::vector<double>& valuesOf(const StoredResult& result, const Key& key) {
  static const std::vector<double> kNone;
  const auto found = result.metrics.find(key);
  return found == result.metrics.end() ? kNone : found->second.values;
}

run::ComparedSide sideOf(const Results& results, const Key& key) {
  run::ComparedSide side;
  std::vector<double> bands;
  for (const StoredResult* result : results) {
    const std::vector<double>& values = valuesOf(*result, key);
    side.values.insert(side.values.end(), values.begin(), values.end());
    if (result->median_band_pct > 0) bands.push_back(result->median_band_pct);
  }
  // That of a usual night: one that was noisy must not hide changes until it is forgotten.
  side.median_band_pct = stats::median(bands).value_or(0);
  return side;
}

std::vector<double> mediansOf(const Results& nights, const Key& key) {
  std::vector<double> medians;
  for (const StoredResult* night : nights) {
    if (const auto median = stats::median(valuesOf(*night, key))) medians.push_back(*median);
  }
  return medians;
}

bool isPlain(const run::ComparedMetric& metric, const Comparison::Row& row) {
  const double base = *row.base.median;
  const double now = *row.now.median;
  if (metric.inPoints()) return std::abs(now - base) >= kPlainPoints;
  return std::max(base, now) >= kPlainRatio * std::min(base, now);
}

/// Takes a change back that nights may differ by, or of which nobody can know that yet. `medians`:
/// of the nights before, at least one.
void holdAgainstNights(const run::ComparedMetric& metric, const std::vector<double>& medians,
                       Comparison::Row& row) {
  const double newest = *row.now.median;
  const auto outside = [&](double low, double high) { return newest < low || newest > high; };
  if (isPlain(metric, row) && outside(std::ranges::min(medians), std::ranges::max(medians))) return;
  const auto never = std::ranges::count_if(medians, [](double one) { return std::isinf(one); });
  if (never > 0) {
    row.regression = false;
    row.change = Change::kNotDistinguishable;
    row.note =
        fmt::format("in {} of the {} nights before it was never over", never, medians.size());
    return;
  }
  const auto expected = stats::nextValueInterval99(medians);
  if (expected && outside(expected->low, expected->high)) return;
  row.regression = false;
  if (!expected) {
    row.change = Change::kTooFewNights;
    row.note =
        fmt::format("{} {} before: what nights differ by is known from {} on", medians.size(),
                    medians.size() == 1 ? "night" : "nights", stats::kMinValuesForNext);
    return;
  }
  row.change = Change::kNotDistinguishable;
  row.note = fmt::format("the {} nights before let expect {:.4g} to {:.4g}", medians.size(),
                         expected->low, expected->high);
}

struct History {
  Results all;
  Results nights;  ///< those that the newest is compared with
  const StoredResult* newest;
};

/// The scenarios that this machine ran in one of the last `nights` before its last night, and not
/// in that. A night ends where a scenario comes again that it has had; the machine is that of the
/// newest result of all.
std::set<std::string> notRunAnyMore(std::span<const StoredResult> results, int nights) {
  Results in_time;
  for (const StoredResult& result : results) in_time.push_back(&result);
  std::ranges::stable_sort(in_time, {}, &StoredResult::started_at);
  std::vector<std::set<std::string>> by_night;
  for (const StoredResult* result : in_time) {
    if (result->cpu != in_time.back()->cpu || result->cores != in_time.back()->cores) continue;
    if (by_night.empty() || by_night.back().contains(result->scenario)) by_night.emplace_back();
    by_night.back().insert(result->scenario);
  }
  std::set<std::string> missing;
  const auto before = static_cast<std::size_t>(std::max(nights, 0));
  const std::size_t last = by_night.empty() ? 0 : by_night.size() - 1;
  for (std::size_t night = last - std::min(last, before); night < last; ++night) {
    for (const std::string& name : by_night[night]) {
      if (!by_night[last].contains(name)) missing.insert(name);
    }
  }
  return missing;
}

History historyOf(std::span<const StoredResult> results, const std::string& scenario, int nights) {
  History history;
  for (const StoredResult& result : results) {
    if (result.scenario == scenario) history.all.push_back(&result);
  }
  history.newest = history.all.back();
  for (const StoredResult* result : history.all) {
    const bool same_machine =
        result->cpu == history.newest->cpu && result->cores == history.newest->cores;
    // A night that was too noisy is nothing to be held against.
    if (result == history.newest || !same_machine || !result->void_because.empty()) continue;
    history.nights.push_back(result);
  }
  const auto most = static_cast<std::size_t>(std::max(nights, 0));
  if (history.nights.size() > most) {
    history.nights.erase(history.nights.begin(), history.nights.end() - nights);
  }
  return history;
}

Comparison::Row rowOf(const run::ComparedMetric& metric, const History& history, const Key& key,
                      double tolerance_pct) {
  run::ComparedSide newest = sideOf({history.newest}, key);
  newest.void_because = history.newest->void_because;
  Comparison::Row row =
      run::compareSides(metric, sideOf(history.nights, key), newest, tolerance_pct);
  const bool changed = row.change == Change::kBetter || row.change == Change::kWorse;
  if (changed && metric.kind != run::ComparedMetric::Kind::kCounted) {
    holdAgainstNights(metric, mediansOf(history.nights, key), row);
  }
  row.scenario = history.newest->scenario;
  row.strategy = key.first;
  for (const StoredResult* result : history.all) {
    const auto found = result->metrics.find(key);
    if (found == result->metrics.end()) continue;
    row.unit = found->second.unit;
    const bool compared = result == history.newest ||
                          std::ranges::find(history.nights, result) != history.nights.end();
    row.nights.push_back({.started_at = result->started_at,
                          .git = result->git,
                          .verdict = result->verdict,
                          .side = run::sideOf(found->second.values),
                          .compared = compared});
  }
  return row;
}

bool onlyZeros(const History& history, const Key& key) {
  return std::ranges::all_of(history.all, [&](const StoredResult* result) {
    return std::ranges::all_of(valuesOf(*result, key), [](double value) { return value == 0; });
  });
}

void addRows(const History& history, double tolerance_pct, std::vector<Comparison::Row>& rows) {
  std::vector<std::string> strategies;
  std::set<Key> keys;
  Results considered = history.nights;
  considered.push_back(history.newest);
  for (const StoredResult* result : considered) {
    for (const auto& [key, metric] : result->metrics) {
      keys.insert(key);
      if (std::ranges::find(strategies, key.first) == strategies.end()) {
        strategies.push_back(key.first);
      }
    }
  }
  for (const std::string& strategy : strategies) {
    for (const run::ComparedMetric& metric : run::comparedMetrics()) {
      const Key key{strategy, metric.name};
      if (!keys.contains(key)) continue;
      if (metric.kind == run::ComparedMetric::Kind::kCounted && onlyZeros(history, key)) continue;
      rows.push_back(rowOf(metric, history, key, tolerance_pct));
    }
  }
}

void addDifferences(const History& history, std::vector<Comparison::Difference>& differences) {
  const StoredResult& newest = *history.newest;
  if (history.nights.empty()) return;
  const StoredResult& before = *history.nights.back();
  const auto add = [&](const char* what, const std::string& base, const std::string& now) {
    if (base != now) differences.push_back({what, base, now});
  };
  add("environment.git", before.git, newest.git);
  add("environment.kernel", before.kernel, newest.kernel);
}

}  // namespace

Comparison trend(std::span<const StoredResult> results, const TrendOptions& options) {
  Comparison comparison;
  comparison.title = "Nightly trend";
  comparison.base = fmt::format("{}, the last {} nights", options.name, options.nights);
  comparison.now = "the newest";
  comparison.tolerance_pct = options.tolerance_pct;
  comparison.significance = stats::kSignificance;
  comparison.min_values = stats::kMinValuesToCompare;
  std::set<std::string> names;
  for (const StoredResult& result : results) names.insert(result.scenario);
  const std::set<std::string> missing = notRunAnyMore(results, options.nights);
  for (const std::string& name : names) {
    const History history = historyOf(results, name, options.nights);
    Comparison::Scenario& scenario = comparison.scenarios.emplace_back();
    scenario.name = name;
    for (const StoredResult* night : history.nights) {
      scenario.base_verdicts.push_back(night->verdict);
    }
    if (missing.contains(name)) {  // what was the newest is a night like those before it
      scenario.base_verdicts.push_back(history.newest->verdict);
      continue;
    }
    scenario.new_verdicts.push_back(history.newest->verdict);
    addDifferences(history, scenario.differences);
    addRows(history, options.tolerance_pct, comparison.rows);
  }
  return comparison;
}

}  // namespace faultline::history
