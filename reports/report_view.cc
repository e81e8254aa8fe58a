#include "reports/report_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "reports/headline.h"
#include "reports/html_text.h"
#include "reports/machine_load.h"
#include "reports/pace.h"
#include "reports/result_json.h"
#include "reports/swept_calls.h"
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

/// A whole number without a point: there are thousands.
Json countOf(double count) {
  if (count == std::floor(count)) return static_cast<std::int64_t>(count);
  return rounded(count);
}

/// Columns of equal length; `count` iterations merged into each entry.
Json paceColumns(const std::vector<Pace>& iterations, int points) {
  Json index = Json::array();
  Json start = Json::array();
  Json ms = Json::array();
  Json count = Json::array();
  const std::size_t group = std::max<std::size_t>(groupSize(iterations.size(), points), 1);
  for (std::size_t i = 0; i < iterations.size(); i += group) {
    const std::size_t end = std::min(i + group, iterations.size());
    double sum = 0;
    double merged = 0;
    for (std::size_t k = i; k < end; ++k) {
      sum += iterations[k].ms;
      merged += iterations[k].count;
    }
    index.push_back(iterations[i].index);
    start.push_back(rounded(iterations[i].start_ms));
    ms.push_back(rounded(sum));
    count.push_back(countOf(merged));
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

/// What the limits left out; the page says so.
struct LeftOut {
  bool points = false;     ///< of curves, which were merged
  bool blocks = false;     ///< whose curves are not shown
  bool failovers = false;  ///< of a run, as the next two
  bool strikes = false;
  bool plans = false;
  std::size_t restarts = 0;  ///< and communicators made anew, of all runs
  std::size_t processes = 0;
  std::size_t metrics = 0;  ///< names
  std::size_t calls = 0;
};

/// Returns how many are left out.
template <typename T>
std::size_t truncate(std::vector<T>& values, int limit) {
  const auto size = static_cast<std::size_t>(limit);
  if (values.size() <= size) return 0;
  const std::size_t out = values.size() - size;
  values.erase(values.begin() + limit, values.end());
  return out;
}

/// The run without what the page does not show or shows in another form: most of a result, which
/// is not made JSON only to be thrown away. Of its metrics it has those of these names.
Run briefRun(const Run& run, const ViewLimits& limits, const std::set<std::string>& metrics,
             LeftOut& left_out) {
  Run brief = run;
  brief.iterations.clear();
  brief.rail_series.clear();
  brief.telemetry = {};
  brief.idle_failovers.clear();
  brief.failbacks.clear();
  brief.degradations.clear();
  brief.errors.clear();
  brief.port_tests.clear();
  brief.collectives.clear();
  brief.requests.clear();
  if (truncate(brief.failovers, limits.events) > 0) left_out.failovers = true;
  if (truncate(brief.plans, limits.events) > 0) left_out.plans = true;
  left_out.restarts += truncate(brief.restarts, limits.events);
  left_out.restarts += truncate(brief.shrinks, limits.events);
  left_out.restarts += truncate(brief.rebuilds, limits.events);
  left_out.processes += truncate(brief.processes, limits.events);
  std::erase_if(brief.metrics, [&](const auto& metric) { return !metrics.contains(metric.first); });
  if (truncate(brief.faults, limits.events) > 0) {
    left_out.strikes = true;
    std::erase_if(brief.evidence, [&](const Evidence& one) { return one.fault >= limits.events; });
  }
  return brief;
}

/// The run's JSON, made of what briefRun left, with its long parts in their short form.
Json runView(const Run& run, Json json, const ViewLimits& limits, LeftOut& left_out) {
  const bool curves = run.block < limits.blocks;
  const auto long_curve = [&](std::size_t size) {
    return size > static_cast<std::size_t>(limits.points);
  };
  json["iteration_count"] = run.iterations.size();
  json["failover_count"] = run.failovers.size();
  json["process_count"] = run.processes.size();
  const bool serves = !run.requests.empty();
  json["iterations"] = !curves  ? Json(nullptr)
                       : serves ? answeredColumns(run.requests)
                                : paceColumns(paceOf(run), limits.points);
  if (!serves && long_curve(run.iterations.size())) left_out.points = true;
  Json series = Json::array();
  if (curves) {
    for (const RailSeries& one : run.rail_series) {
      if (long_curve(one.tx_bytes.size())) left_out.points = true;
      series.push_back(thinned(one, limits.points));
    }
  } else {
    left_out.blocks = true;
  }
  json["rail_series"] = std::move(series);
  for (const char* unseen :
       {"requests", "rails", "counters", "resources", "idle_failovers", "failbacks", "degradations",
        "errors", "port_tests", "collectives", "telemetry"}) {
    json.erase(unseen);
  }
  return json;
}

/// Six digits are more than the page shows, and shorter to write than 17.
Json shortened(double value) {
  if (!std::isfinite(value)) return nullptr;
  return Json::parse(fmt::format("{:.6g}", value));
}

/// Without what is nothing: most calls are right, settled and all counted.
Json strategyCallsView(const StrategyCalls& calls) {
  Json view{{"strategy", calls.strategy}, {"n", calls.n}};
  const auto put = [&](const char* key, const std::optional<double>& value) {
    if (value) view[key] = shortened(*value);
  };
  put("p50_ms", calls.p50_ms);
  put("busbw", calls.busbw);
  put("kept", calls.kept);
  put("bound", calls.bound);
  if (calls.kept && calls.bound && calls.least && *calls.kept * *calls.bound > 1) {
    put("least", calls.least);
  }
  put("model", calls.model);
  put("time_over_bound", calls.time_over_bound);
  if (calls.left_out > 0) view["left_out"] = calls.left_out;
  if (calls.untouched > 0) view["untouched"] = calls.untouched;
  if (calls.wrong_elements > 0) view["wrong_elements"] = calls.wrong_elements;
  if (calls.latency_only) view["latency_only"] = true;
  if (calls.unsettled) view["unsettled"] = true;
  if (calls.mis_measured) view["mis_measured"] = true;
  return view;
}

/// One list instead of the rows of all runs: ten times the blocks are not ten times the page.
Json callsView(const std::vector<SweptCall>& calls, const ViewLimits& limits, LeftOut& left_out) {
  Json list = Json::array();
  std::size_t lines = 0;
  // Results of older versions do not say which calls were met.
  const bool met = std::ranges::any_of(calls, [](const SweptCall& call) {
    return std::ranges::any_of(call.strategies,
                               [](const StrategyCalls& of) { return of.struck > 0; });
  });
  for (const SweptCall& call : calls) {
    lines += call.strategies.size();
    if (lines > static_cast<std::size_t>(limits.calls)) break;
    Json strategies = Json::array();
    for (const StrategyCalls& of : call.strategies) {
      strategies.push_back(strategyCallsView(of));
      if (met && of.faulted && of.struck == 0) strategies.back()["missed"] = true;
    }
    list.push_back({{"operation", call.operation},
                    {"size_bytes", call.size_bytes},
                    {"dtype", call.dtype},
                    {"op", call.op},
                    {"in_place", call.in_place},
                    {"strategies", std::move(strategies)}});
  }
  left_out.calls = calls.size() - list.size();
  return list;
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
  std::size_t whole = 0;  // iterations of a run that did its work
  for (const Run& run : result.runs) {
    if (run.status == RunStatus::kOk) whole = std::max(whole, run.iterations.size());
  }
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    std::map<std::string, std::vector<double>> all;
    const auto row = std::ranges::find(result.summary, tally.strategy, &Summary::strategy);
    const auto pooled = row == result.summary.end() ? std::nullopt : row->pooled_rates;
    for (const Run& run : result.runs) {
      if (run.strategy != tally.strategy) continue;
      for (const Failover& failover : run.failovers) all["pause"].push_back(failover.pause_ms);
      for (const ServedRequest& request : run.requests) {
        if (pooled && request.rate >= *pooled) continue;
        if (request.ttft_ms) all["ttft"].push_back(*request.ttft_ms);
        if (request.tpot_ms) all["tpot"].push_back(*request.tpot_ms);
        if (request.e2e_ms) all["whole"].push_back(*request.e2e_ms);
      }
      if (!run.requests.empty()) continue;
      for (const Iteration& iteration : run.iterations) all["iteration"].push_back(iteration.ms);
      if (!run.unfinished) continue;
      // What was never begun took no less than what never ended.
      const std::size_t missing = whole - std::min(whole, run.iterations.size());
      std::vector<double>& times = all["iteration"];
      times.insert(times.end(), std::max<std::size_t>(missing, 1), run.unfinished->ms);
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

Json rangeView(const std::optional<LoadRange>& range) {
  if (!range) return nullptr;
  return {{"min", rounded(range->min)},
          {"median", rounded(range->median)},
          {"max", rounded(range->max)}};
}

Json loadView(const ScenarioResult& result) {
  const std::optional<LoadOfRuns> load = loadOf(result.runs);
  if (!load) return nullptr;
  return {{"runs", load->runs},
          {"others_pct", rangeView(load->others_pct)},
          {"busy_pct", rangeView(load->busy_pct)},
          {"stolen_pct", rangeView(load->stolen_pct)},
          {"load_average", rangeView(load->load_average)},
          {"waiting_pct", rangeView(load->waiting_pct)}};
}

Json notesOf(const ScenarioResult& result, const ViewLimits& limits, const LeftOut& left_out) {
  Json notes = Json::array();
  if (left_out.points) notes.push_back("Long curves are drawn with fewer, wider points.");
  if (left_out.blocks) {
    notes.push_back(fmt::format("Curves are shown for the first {} blocks.", limits.blocks));
  }
  if (left_out.failovers) {
    notes.push_back(fmt::format("At most {} failovers of a run are listed.", limits.events));
  }
  if (left_out.strikes) {
    notes.push_back(fmt::format("At most {} strikes of faults of a run are shown.", limits.events));
  }
  if (left_out.plans) {
    notes.push_back(fmt::format("At most {} plans of a run are listed.", limits.events));
  }
  if (result.runs.size() > static_cast<std::size_t>(limits.runs)) {
    notes.push_back(fmt::format("{} of {} runs are listed.", limits.runs, result.runs.size()));
  }
  std::string unseen;
  for (const auto& [what, count] :
       {std::pair{"restarts and communicators made anew", left_out.restarts},
        std::pair{"exit codes", left_out.processes}, std::pair{"metrics", left_out.metrics},
        std::pair{"calls", left_out.calls}}) {
    if (count > 0) unseen += fmt::format("{}{} ({})", unseen.empty() ? "" : ", ", what, count);
  }
  if (!unseen.empty()) {
    notes.push_back(fmt::format("Not shown here: {}; result.json has all of them.", unseen));
  }
  return notes;
}

}  // namespace

Json reportView(const ScenarioResult& result, const ViewLimits& limits) {
  LeftOut left_out;
  std::set<std::string> metrics = metricNames(result);
  while (metrics.size() > static_cast<std::size_t>(limits.metrics)) {
    metrics.erase(std::prev(metrics.end()));
    ++left_out.metrics;
  }
  ScenarioResult brief = result;
  truncate(brief.runs, limits.runs);
  for (Run& run : brief.runs) run = briefRun(run, limits, metrics, left_out);
  Json view = toJson(brief);
  for (std::size_t i = 0; i < brief.runs.size(); ++i) {
    Json& run = view["runs"][i];
    run = runView(result.runs[i], std::move(run), limits, left_out);
  }
  const std::vector<SweptCall> calls = sweptCalls(result);
  view["calls"] = callsView(calls, limits, left_out);
  view["met_some_calls"] = metSomeCalls(result);
  view["call_count"] = calls.size();

  const VerdictText verdict = explainVerdict(result);
  view["name"] = scenarioName(result);
  view["notes"] = notesOf(result, limits, left_out);
  view["headline"] = headline(result);
  view["verdict_text"] = besideHeadline(verdict, result);
  view["reasons"] = verdict.reasons;
  if (result.noise) view["noise_text"] = noiseText(*result.noise);
  if (result.drift) view["drift_text"] = driftText(*result.drift);
  for (std::size_t i = 0; i < result.summary.size(); ++i) {
    const auto& cost = result.summary[i].fault_cost;
    if (cost) view["summary"][i]["fault_cost_text"] = faultCostText(*cost);
  }
  view["told"] = result.notes;
  view["load"] = loadView(result);
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
      {.points = 100, .blocks = 2, .events = 32, .calls = 1500, .metrics = 32},
      {.points = 60, .blocks = 1, .events = 8, .calls = 1000, .metrics = 16, .runs = 500},
      {.points = 30, .blocks = 1, .events = 2, .calls = 500, .metrics = 8, .runs = 100},
  }};
  std::string text;
  for (const ViewLimits& limits : kLimits) {
    text = escapedForScript(reportView(result, limits));
    if (text.size() <= budget) break;
  }
  return text;
}

}  // namespace faultline::reports
