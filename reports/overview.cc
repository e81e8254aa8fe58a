#include "reports/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/atomic_file.h"
#include "reports/assets.h"
#include "reports/html_text.h"
#include "reports/page_head.h"
#include "reports/tally.h"
#include "reports/text.h"
#include "reports/verdict_text.h"

namespace faultline::reports {
namespace {

constexpr const char* kOverviewTitle = "Overview · Faultline";

Json orNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json viewOf(const Percentiles& times) {
  return {{"p50", orNull(times.p50)},
          {"p95", orNull(times.p95)},
          {"p99", orNull(times.p99)},
          {"max", orNull(times.max)},
          {"n", times.n}};
}

Json viewOf(const Summary& row, const StrategyTally& tally) {
  Json json{{"strategy", tally.strategy},
            {"origin", nameOf(row.origin)},
            {"status", statusWords(tally)},
            {"all_ok", tally.runs == tally.ok},
            {"blocks", row.n},
            {"bound_pct", orNull(row.bound_pct)},
            {"mis_measured", row.mis_measured},
            {"note", row.note},
            {"wrong_elements", tally.wrong_elements},
            {"checked_elements", tally.checked_elements},
            {"fault_cost_text", row.fault_cost ? Json(faultCostText(*row.fault_cost)) : nullptr},
            {"overhead_pct", nullptr},
            {"ci95", nullptr},
            {"distinguishable", nullptr},
            {"exposed_pct", nullptr},
            {"exposed_ci95", nullptr},
            {"pause_ms", nullptr},
            {"ttft_ms", nullptr},
            {"tpot_ms", nullptr}};
  if (row.overhead_pct) {
    json["overhead_pct"] = row.overhead_pct->median;
    if (const auto& ci = row.overhead_pct->ci95) json["ci95"] = {ci->lo, ci->hi};
    if (const auto known = row.overhead_pct->distinguishable) json["distinguishable"] = *known;
  }
  if (const auto& exposed = row.exposed_overhead_pct) {
    json["exposed_pct"] = exposed->median;
    if (const auto& ci = exposed->ci95) json["exposed_ci95"] = {ci->lo, ci->hi};
  }
  if (row.failover_pause_ms) json["pause_ms"] = viewOf(*row.failover_pause_ms);
  if (row.latency) {
    json["ttft_ms"] = viewOf(row.latency->ttft_ms);
    json["tpot_ms"] = viewOf(row.latency->tpot_ms);
  }
  return json;
}

Json viewOf(const OverviewEntry& entry, const std::string& id) {
  const ScenarioResult& result = *entry.result;
  VerdictText verdict = explainVerdict(result);
  verdict.reasons.insert(verdict.reasons.begin(), verdict.broken.begin(), verdict.broken.end());
  Json rows = Json::array();
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    const auto row = std::ranges::find(result.summary, tally.strategy, &Summary::strategy);
    rows.push_back(viewOf(row == result.summary.end() ? Summary{} : *row, tally));
  }
  const Json& scenario = result.scenario;
  const bool described = scenario.is_object() && scenario.contains("description") &&
                         scenario["description"].is_string();
  return {{"id", id},
          {"name", scenarioName(result)},
          {"description", described ? scenario["description"] : Json("")},
          {"report", entry.report},
          {"started_at", result.started_at},
          {"verdict", nameOf(result.verdict)},
          {"interrupted", result.interrupted},
          {"headline", verdict.headline},
          {"reasons", verdict.reasons},
          {"rows", std::move(rows)}};
}

}  // namespace

Json overviewView(std::span<const OverviewEntry> entries) {
  Json scenarios = Json::array();
  std::map<std::string, int> seen;  // results of the same scenario
  for (const OverviewEntry& entry : entries) {
    const std::string name = scenarioName(*entry.result);
    const int number = ++seen[name];
    // No name of a scenario has a colon.
    scenarios.push_back(viewOf(entry, number == 1 ? name : fmt::format("{}:{}", name, number)));
  }
  return {{"scenarios", std::move(scenarios)}};
}

std::string overviewHtml(std::span<const OverviewEntry> entries) {
  const std::string head = pageHead(kOverviewTitle, PageScripts::kInline);
  const std::string data = escapedForScript(overviewView(entries));
  return filled(assets::overviewTemplate(), {{"head", head},
                                             {"data", data},
                                             {"elements", assets::elementsJs()},
                                             {"script", assets::overviewJs()}});
}

Status writeOverview(std::span<const OverviewEntry> entries, const std::string& directory,
                     Earlier earlier) {
  ASSIGN_OR_RETURN(ClaimedFiles claimed,
                   ClaimedFiles::claim(directory, {"overview.html"},
                                       {"overview.html", kOverviewTitle}, earlier));
  RETURN_IF_ERROR(writeFileAtomically(directory + "/overview.html", overviewHtml(entries),
                                      Sync::kYes, Links::kRefused));
  return claimed.finish();
}

}  // namespace faultline::reports
