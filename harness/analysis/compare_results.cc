#include "harness/analysis/compare_results.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "harness/stats/bootstrap.h"
#include "harness/stats/overhead.h"
#include "harness/stats/quantile.h"
#include "reports/result_json.h"

namespace faultline::run {
namespace {

using reports::Change;
using reports::Comparison;
using reports::Json;
using reports::ScenarioResult;
using Kind = ComparedMetric::Kind;
using Results = std::vector<const ScenarioResult*>;

constexpr double kInPercent = 100;
constexpr std::uint64_t kSeed = 1;  // of the intervals: the same for the same values

double meanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// What is counted has a mean, as the median of rare things is 0.
void judgeCounts(const ComparedSide& base, const ComparedSide& now, Comparison::Row& row) {
  row.base.median = meanOf(base.values);
  row.now.median = meanOf(now.values);
  row.base.ci95 = row.now.ci95 = std::nullopt;
  row.note = "mean per run; not a matter of chance";
  row.change = *row.now.median > *row.base.median   ? Change::kWorse
               : *row.now.median < *row.base.median ? Change::kBetter
                                                    : Change::kNotDistinguishable;
  row.regression = row.change == Change::kWorse;
}

std::optional<double> differenceOf(const ComparedMetric& metric, const Comparison::Row& row) {
  if (!std::isfinite(*row.now.median) || !std::isfinite(*row.base.median)) return std::nullopt;
  const double difference = *row.now.median - *row.base.median;
  if (metric.inPoints()) return difference;
  if (*row.base.median == 0) return std::nullopt;
  return difference / std::abs(*row.base.median) * kInPercent;
}

std::string lostWords(const char* name, const ComparedSide& side) {
  return fmt::format("{} {} of {} ended before the work was done", side.lost,
                     side.lost == 1 ? "run" : "runs", name);
}

/// That one side's run, not over when it was watched no longer, took longer than all of the other
/// side did. Empty: it is known, or there is no such run.
std::string whyOrderUnknown(const ComparedSide& base, const ComparedSide& now) {
  for (const bool swapped : {false, true}) {
    const ComparedSide& watched = swapped ? base : now;
    const ComparedSide& other = swapped ? now : base;
    if (!watched.watched_ms) continue;
    double longest = 0;
    for (const double value : other.values) {
      if (std::isfinite(value)) longest = std::max(longest, value);
    }
    if (longest <= *watched.watched_ms) continue;
    return fmt::format(
        "a run of {} was not back when it had been watched for {:.0f} ms, which was all there was: "
        "whether it takes longer than {:.0f} ms, as one of {} did, nobody knows",
        swapped ? "BASE" : "NEW", *watched.watched_ms, longest, swapped ? "NEW" : "BASE");
  }
  return "";
}

Change changeOf(const ComparedMetric& metric, const ComparedSide& base, const ComparedSide& now,
                Comparison::Row& row) {
  if (base.values.empty()) {
    if (base.lost > 0) row.note = lostWords("BASE", base);
    return Change::kMissingInBase;
  }
  if (now.values.empty()) {
    if (now.lost > 0) row.note = lostWords("NEW", now);
    return Change::kMissingInNew;
  }
  const bool speed = metric.kind == Kind::kSpeed;
  for (const ComparedSide* side : {&base, &now}) {
    if (!speed || side->void_because.empty()) continue;
    row.note = fmt::format("{}: {}", side == &base ? "BASE" : "NEW", side->void_because);
    return Change::kVoid;
  }
  if (std::min(base.values.size(), now.values.size()) < stats::kMinValuesToCompare) {
    return Change::kTooFew;
  }
  const auto test = stats::mannWhitney(base.values, now.values);
  if (!test) return Change::kVoid;  // one of them is not a number
  if (std::string unknown = whyOrderUnknown(base, now); !unknown.empty()) {
    row.note = std::move(unknown);
    return Change::kVoid;
  }
  row.p = test->p;
  const bool same = *row.now.median == *row.base.median;  // also when both are infinite
  const double shift = same ? 0 : *row.now.median - *row.base.median;
  if (test->p >= stats::kSignificance || shift == 0) return Change::kNotDistinguishable;
  const double band = speed ? std::max(base.median_band_pct, now.median_band_pct) : 0;
  if (row.difference && std::abs(*row.difference) <= band) {
    row.note = fmt::format("medians of equal runs differ by up to {:.2f} %", band);
    return Change::kNotDistinguishable;
  }
  const Change change = (shift > 0) == metric.higher_is_better ? Change::kBetter : Change::kWorse;
  const bool now_looks_better = change == Change::kBetter;
  const ComparedSide& looks_better = now_looks_better ? now : base;
  if (looks_better.lost == 0) return change;
  row.note = lostWords(now_looks_better ? "NEW" : "BASE", looks_better) +
             ": that the others look better proves nothing";
  return Change::kVoid;
}

ComparedSide together(const ComparedMetric& metric, const Results& results,
                      const std::string& strategy) {
  ComparedSide side;
  for (const ScenarioResult* result : results) {
    const ComparedValues found = metric.values(*result, strategy);
    side.values.insert(side.values.end(), found.values.begin(), found.values.end());
    side.lost += found.lost;
    if (found.watched_ms) {
      side.watched_ms = std::min(side.watched_ms.value_or(*found.watched_ms), *found.watched_ms);
    }
    if (side.void_because.empty()) side.void_because = reports::voidBecause(*result);
    if (!result->noise) continue;
    side.median_band_pct = std::max(side.median_band_pct, result->noise->median_band_pct);
  }
  return side;
}

Results named(std::span<const ScenarioResult> results, const std::string& name) {
  Results found;
  for (const ScenarioResult& result : results) {
    if (reports::scenarioName(result) == name) found.push_back(&result);
  }
  return found;
}

template <typename T>
void addNew(std::vector<T>& list, const T& value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

/// What a path is, where two are easily taken for each other; in the words of report.html.
std::string withMeaning(const std::string& path) {
  if (path == "environment.congestion_control") return path + " (of the rails)";
  if (path == "environment.tcp.tcp_congestion_control") return path + " (the kernel's default)";
  return path;
}

/// Path and value of everything that a number depends on: "environment.kernel" -> "\"Linux 6.1\"".
std::map<std::string, std::string> settingsOf(const ScenarioResult& result) {
  ScenarioResult settings;
  settings.scenario = result.scenario;
  settings.environment = result.environment;
  settings.seed = result.seed;
  Json tree = reports::toJson(settings);
  // One setting: as a list, one more library would move all others.
  tree["environment"]["libraries"] = tree["environment"]["libraries"].dump();
  std::map<std::string, std::string> flat;
  for (const char* key : {"environment", "scenario", "seed"}) {
    Json part = Json::object();
    part[key] = tree.at(key);
    const Json paths = part.flatten();
    for (const auto& [path, value] : paths.items()) {
      std::string dotted = path.substr(1);
      std::ranges::replace(dotted, '/', '.');
      flat[withMeaning(dotted)] = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
  }
  return flat;
}

/// What is not the same in all results, against the first of BASE.
std::vector<Comparison::Difference> differencesOf(const Results& base, const Results& now) {
  std::vector<Comparison::Difference> differences;
  if (base.empty() || now.empty()) return differences;
  const auto reference = settingsOf(*base.front());
  Results others(base.begin() + 1, base.end());
  others.insert(others.end(), now.begin(), now.end());
  for (const ScenarioResult* other : others) {
    const auto settings = settingsOf(*other);
    std::vector<std::string> paths;
    for (const auto& [path, value] : reference) paths.push_back(path);
    for (const auto& [path, value] : settings) addNew(paths, path);
    for (const std::string& path : paths) {
      const auto text = [&](const auto& map) {
        const auto found = map.find(path);
        return found == map.end() ? std::string() : found->second;
      };
      Comparison::Difference one{path, text(reference), text(settings)};
      const bool known = std::ranges::any_of(differences, [&](const auto& seen) {
        return seen.what == one.what && seen.now == one.now;
      });
      if (one.base != one.now && !known) differences.push_back(std::move(one));
    }
  }
  return differences;
}

void addRows(const std::string& name, const Results& base, const Results& now, double tolerance_pct,
             std::vector<Comparison::Row>& rows) {
  std::vector<std::string> strategies;
  for (const Results* side : {&base, &now}) {
    for (const ScenarioResult* result : *side) {
      for (const std::string& strategy : measuredStrategies(*result)) addNew(strategies, strategy);
    }
  }
  for (const std::string& strategy : strategies) {
    for (const ComparedMetric& metric : comparedMetrics()) {
      const ComparedSide before = together(metric, base, strategy);
      const ComparedSide after = together(metric, now, strategy);
      if (before.values.empty() && after.values.empty()) continue;
      const auto isZero = [](double value) { return value == 0; };
      if (metric.kind == Kind::kCounted && std::ranges::all_of(before.values, isZero) &&
          std::ranges::all_of(after.values, isZero)) {
        continue;
      }
      Comparison::Row row = compareSides(metric, before, after, tolerance_pct);
      row.scenario = name;
      row.strategy = strategy;
      row.unit = unitOf(metric, base.empty() ? *now.front() : *base.front());
      rows.push_back(std::move(row));
    }
  }
}

}  // namespace

Comparison::Side sideOf(const std::vector<double>& values) {
  Comparison::Side side{.n = static_cast<int>(values.size())};
  side.median = stats::median(values);
  if (const auto interval = stats::medianInterval95(values, kSeed)) {
    side.ci95 = reports::Interval{interval->low, interval->high};
  }
  return side;
}

Comparison::Row compareSides(const ComparedMetric& metric, const ComparedSide& base,
                             const ComparedSide& now, double tolerance_pct) {
  Comparison::Row row;
  row.metric = metric.name;
  row.unit = metric.unit;
  row.base = sideOf(base.values);
  row.now = sideOf(now.values);
  row.difference_unit = metric.inPoints() ? "points" : "%";
  const bool both = row.base.median && row.now.median;
  if (both && metric.kind == Kind::kCounted) {
    judgeCounts(base, now, row);
    row.difference = differenceOf(metric, row);
    return row;
  }
  if (both) row.difference = differenceOf(metric, row);
  row.change = changeOf(metric, base, now, row);
  // From nothing to something is more than any tolerance.
  row.regression = row.change == Change::kWorse &&
                   (!row.difference || std::abs(*row.difference) > tolerance_pct);
  return row;
}

Comparison compare(std::span<const ScenarioResult> base, std::span<const ScenarioResult> now,
                   const CompareOptions& options) {
  Comparison comparison;
  comparison.base = options.base;
  comparison.now = options.now;
  comparison.tolerance_pct = options.tolerance_pct;
  comparison.significance = stats::kSignificance;
  comparison.min_values = stats::kMinValuesToCompare;
  std::vector<std::string> names;
  for (const auto side : {base, now}) {
    for (const ScenarioResult& result : side) addNew(names, reports::scenarioName(result));
  }
  for (const std::string& name : names) {
    const Results before = named(base, name);
    const Results after = named(now, name);
    Comparison::Scenario& scenario = comparison.scenarios.emplace_back();
    scenario.name = name;
    for (const ScenarioResult* result : before) {
      scenario.base_verdicts.emplace_back(reports::nameOf(result->verdict));
    }
    for (const ScenarioResult* result : after) {
      scenario.new_verdicts.emplace_back(reports::nameOf(result->verdict));
    }
    scenario.differences = differencesOf(before, after);
    addRows(name, before, after, options.tolerance_pct, comparison.rows);
  }
  return comparison;
}

}  // namespace faultline::run
