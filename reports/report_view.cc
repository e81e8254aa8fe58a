#include "reports/report_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "reports/html_text.h"
#include "reports/result_json.h"
#include "reports/tally.h"
#include "reports/verdict_text.h"

namespace faultline::reports {
namespace {

/// A microsecond is finer than any picture here, and shorter to write than 17 digits.
Json rounded(double ms) {
  constexpr double kPerMillisecond = 1000;
  if (!std::isfinite(ms)) return nullptr;
  return std::round(ms * kPerMillisecond) / kPerMillisecond;
}

std::size_t groupSize(std::size_t count, int points) {
  const auto limit = static_cast<std::size_t>(std::max(points, 1));
  return (count + limit - 1) / limit;
}

/// Columns of equal length; `count` iterations merged into each entry.
Json iterationColumns(const std::vector<Iteration>& iterations, int points) {
  Json index = Json::array();
  Json start = Json::array();
  Json ms = Json::array();
  Json count = Json::array();
  const std::size_t group = std::max<std::size_t>(groupSize(iterations.size(), points), 1);
  for (std::size_t i = 0; i < iterations.size(); i += group) {
    const std::size_t end = std::min(i + group, iterations.size());
    double sum = 0;
    for (std::size_t k = i; k < end; ++k) sum += iterations[k].ms;
    index.push_back(iterations[i].index);
    start.push_back(rounded(iterations[i].start_ms));
    ms.push_back(rounded(sum));
    count.push_back(end - i);
  }
  return {{"index", std::move(index)},
          {"start_ms", std::move(start)},
          {"ms", std::move(ms)},
          {"count", std::move(count)}};
}

/// Requests whose last token came, by the time at which it did, in the same columns: requests
/// overlap, so what is drawn of them is how many ended in each of equal bins.
Json answeredColumns(const std::vector<ServedRequest>& requests) {
  constexpr double kMostBins = 80;  // each wide enough to be seen
  double end = 0;
  for (const ServedRequest& request : requests) {
    if (request.arrival_ms && request.e2e_ms) {
      end = std::max(end, *request.arrival_ms + *request.e2e_ms);
    }
  }
  double width = 1;
  for (const double step : {1., 2., 5.}) {
    const double wide =
        step * std::pow(10, std::ceil(std::log10(std::max(end, 1.) / kMostBins / step)));
    if (step == 1 || wide < width) width = wide;
  }
  std::vector<int> counts(end > 0 ? static_cast<std::size_t>(end / width) + 1 : 0);
  for (const ServedRequest& request : requests) {
    if (!request.arrival_ms || !request.e2e_ms) continue;
    const double at = std::max(*request.arrival_ms + *request.e2e_ms, 0.);
    ++counts[static_cast<std::size_t>(at / width)];
  }
  Json columns{{"index", Json::array()},
               {"start_ms", Json::array()},
               {"ms", Json::array()},
               {"count", Json::array()}};
  for (std::size_t bin = 0; bin < counts.size(); ++bin) {
    columns["index"].push_back(bin);
    columns["start_ms"].push_back(rounded(static_cast<double>(bin) * width));
    columns["ms"].push_back(rounded(width));
    columns["count"].push_back(counts[bin]);
  }
  return columns;
}

Json thinned(const RailSeries& series, int points) {
  const std::size_t group = std::max<std::size_t>(groupSize(series.tx_bytes.size(), points), 1);
  Json bytes = Json::array();
  for (std::size_t i = 0; i < series.tx_bytes.size(); i += group) {
    std::int64_t sum = 0;
    for (std::size_t k = i; k < std::min(i + group, series.tx_bytes.size()); ++k) {
      sum += series.tx_bytes[k];
    }
    bytes.push_back(sum);
  }
  return {{"node", series.node},
          {"rail", series.rail},
          {"start_ms", rounded(series.start_ms)},
          {"bin_ms", rounded(series.bin_ms * static_cast<double>(group))},
          {"tx_bytes", std::move(bytes)}};
}

template <typename T>
bool truncate(std::vector<T>& values, int limit) {
  const auto size = static_cast<std::size_t>(limit);
  if (values.size() <= size) return false;
  values.erase(values.begin() + limit, values.end());
  return true;
}

/// The run without what the page does not show or shows in another form: most of a result, which
/// is not made JSON only to be thrown away.
Run briefRun(const Run& run, const ViewLimits& limits, std::vector<bool>& thinned_parts) {
  Run brief = run;
  brief.iterations.clear();
  brief.rail_series.clear();
  brief.telemetry = {};
  brief.idle_failovers.clear();
  if (truncate(brief.failovers, limits.events)) thinned_parts[2] = true;
  if (truncate(brief.degradations, limits.events)) thinned_parts[2] = true;
  if (truncate(brief.failbacks, limits.events)) thinned_parts[2] = true;
  if (truncate(brief.plans, limits.events)) thinned_parts[4] = true;
  brief.port_tests.clear();
  brief.requests.clear();
  if (truncate(brief.faults, limits.events)) {
    thinned_parts[3] = true;
    std::erase_if(brief.evidence, [&](const Evidence& one) { return one.fault >= limits.events; });
  }
  return brief;
}

/// The run's JSON, made of what briefRun left, with its long parts in their short form.
Json runView(const Run& run, Json json, const ViewLimits& limits,
             std::vector<bool>& thinned_parts) {
  const bool curves = run.block < limits.blocks;
  const auto long_curve = [&](std::size_t size) {
    return size > static_cast<std::size_t>(limits.points);
  };
  json["iteration_count"] = run.iterations.size();
  json["failover_count"] = run.failovers.size();
  const bool serves = !run.requests.empty();
  json["iterations"] = !curves  ? Json(nullptr)
                       : serves ? answeredColumns(run.requests)
                                : iterationColumns(run.iterations, limits.points);
  if (!serves && long_curve(run.iterations.size())) thinned_parts[0] = true;
  Json series = Json::array();
  if (curves) {
    for (const RailSeries& one : run.rail_series) {
      if (long_curve(one.tx_bytes.size())) thinned_parts[0] = true;
      series.push_back(thinned(one, limits.points));
    }
  } else {
    thinned_parts[1] = true;
  }
  json["rail_series"] = std::move(series);
  for (const char* unseen :
       {"requests", "rails", "counters", "resources", "idle_failovers", "telemetry"}) {
    json.erase(unseen);
  }
  return json;
}

Json tallies(const ScenarioResult& result) {
  Json array = Json::array();
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    array.push_back({{"strategy", tally.strategy},
                     {"runs", tally.runs},
                     {"status", statusWords(tally)},
                     {"all_ok", tally.ok == tally.runs},
                     {"failovers", tally.failovers},
                     {"restarts", tally.restarts},
                     {"lost_iterations", tally.lost_iterations},
                     {"wrong_elements", tally.wrong_elements},
                     {"checked_elements", tally.checked_elements},
                     {"longest_pause_ms", rounded(tally.longest_pause_ms)}});
  }
  return array;
}

/// Hundredths of the sorted values, or all where they are fewer: what a distribution looks like, of
/// every sample, however much the curves are thinned.
Json hundredths(std::vector<double> values) {
  constexpr std::size_t kSteps = 100;
  std::ranges::sort(values);
  const std::size_t steps = std::min(values.size() - 1, kSteps);
  Json list = Json::array();
  for (std::size_t i = 0; i <= steps; ++i) {
    list.push_back(rounded(values[steps == 0 ? 0 : i * (values.size() - 1) / steps]));
  }
  return list;
}

/// Per strategy: how long iterations took, and how long failovers paused a channel; of a server the
/// latencies of its requests, which are its iterations.
Json distributions(const ScenarioResult& result) {
  Json list = Json::array();
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    std::map<std::string, std::vector<double>> all;
    for (const Run& run : result.runs) {
      if (run.strategy != tally.strategy) continue;
      for (const Failover& failover : run.failovers) all["pause"].push_back(failover.pause_ms);
      for (const ServedRequest& request : run.requests) {
        if (request.ttft_ms) all["ttft"].push_back(*request.ttft_ms);
        if (request.tpot_ms) all["tpot"].push_back(*request.tpot_ms);
        if (request.e2e_ms) all["whole"].push_back(*request.e2e_ms);
      }
      if (!run.requests.empty()) continue;
      for (const Iteration& iteration : run.iterations) all["iteration"].push_back(iteration.ms);
    }
    for (auto& [of, values] : all) {
      std::erase_if(values, [](double value) { return !std::isfinite(value); });
      if (values.size() < 2) continue;
      list.push_back({{"strategy", tally.strategy},
                      {"of", of},
                      {"n", values.size()},
                      {"ms", hundredths(values)}});
    }
  }
  return list;
}

}  // namespace

Json reportView(const ScenarioResult& result, const ViewLimits& limits) {
  std::vector<bool> thinned_parts(5, false);
  ScenarioResult brief = result;
  truncate(brief.runs, limits.runs);
  for (Run& run : brief.runs) run = briefRun(run, limits, thinned_parts);
  Json view = toJson(brief);
  for (std::size_t i = 0; i < brief.runs.size(); ++i) {
    Json& run = view["runs"][i];
    run = runView(result.runs[i], std::move(run), limits, thinned_parts);
  }

  Json notes = Json::array();
  if (thinned_parts[0]) notes.push_back("Long curves are drawn with fewer, wider points.");
  if (thinned_parts[1]) {
    notes.push_back(fmt::format("Curves are shown for the first {} blocks.", limits.blocks));
  }
  if (thinned_parts[2]) {
    notes.push_back(fmt::format("At most {} failovers of a run are listed.", limits.events));
  }
  if (thinned_parts[3]) {
    notes.push_back(fmt::format("At most {} strikes of faults of a run are shown.", limits.events));
  }
  if (thinned_parts[4]) {
    notes.push_back(fmt::format("At most {} plans of a run are listed.", limits.events));
  }
  if (result.runs.size() > static_cast<std::size_t>(limits.runs)) {
    notes.push_back(fmt::format("{} of {} runs are listed.", limits.runs, result.runs.size()));
  }
  const VerdictText verdict = explainVerdict(result);
  view["name"] = scenarioName(result);
  view["notes"] = std::move(notes);
  view["headline"] = verdict.headline;
  view["reasons"] = verdict.reasons;
  if (result.noise) view["noise_text"] = noiseText(*result.noise);
  if (result.drift) view["drift_text"] = driftText(*result.drift);
  for (std::size_t i = 0; i < result.summary.size(); ++i) {
    const auto& cost = result.summary[i].fault_cost;
    if (cost) view["summary"][i]["fault_cost_text"] = faultCostText(*cost);
  }
  view["told"] = result.notes;
  view["tallies"] = tallies(result);
  view["distributions"] = distributions(result);
  return view;
}

std::string reportViewText(const ScenarioResult& result, std::size_t budget) {
  constexpr std::array<ViewLimits, 7> kLimits{{
      {},
      {.points = 300},
      {.points = 150},
      {.points = 150, .blocks = 6, .events = 100},
      {.points = 100, .blocks = 2, .events = 32},
      {.points = 60, .blocks = 1, .events = 8, .runs = 500},
      {.points = 30, .blocks = 1, .events = 2, .runs = 100},
  }};
  std::string text;
  for (const ViewLimits& limits : kLimits) {
    text = escapedForScript(reportView(result, limits));
    if (text.size() <= budget) break;
  }
  return text;
}

}  // namespace faultline::reports
