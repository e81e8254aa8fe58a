// Writes the report of a made-up result, for the browser test and for looking at.

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "reports/comparison.h"
#include "reports/machine_load.h"
#include "reports/overview.h"
#include "reports/renderer.h"
#include "reports/terminal_summary.h"
#include "support/sample_result.h"

namespace faultline {
namespace {

/// The first failover, as if it had taken the kernel so long to do its fault.
void strikeSlowly(reports::ScenarioResult& result, double ms) {
  for (reports::Run& run : result.runs) {
    if (run.failovers.empty()) continue;
    reports::Failover& failover = run.failovers.front();
    failover.fault_within_ms = ms;
    *failover.detected_ms += ms;
    *failover.fenced_ms += ms;
    *failover.resumed_ms += ms;
    return;
  }
}

/// Rows with all that the sample lacks: intervals, percentiles, latencies, a modelled strategy, a
/// fault that took long to do.
void addRichRows(reports::ScenarioResult& result) {
  using reports::Interval;
  using reports::Percentiles;
  for (reports::Summary& row : result.summary) {
    row.n = 8;
    if (row.overhead_pct) {
      const double median = row.overhead_pct->median;
      row.overhead_pct->ci95 = Interval{median - 3.2, median + 4.1};
    }
    row.latency = reports::Latency{Percentiles{41.5, 88.2, 120.4, 131.0, 400},
                                   Percentiles{9.1, 12.2, std::nullopt, 13.9, 80},
                                   Percentiles{240.5, 402.7, std::nullopt, 431.0, 80}};
  }
  result.summary[2].failover_pause_ms = Percentiles{23.4, 31.9, 36.2, 38.8, 320};
  reports::Summary modelled = result.summary[1];
  modelled.strategy = "kv_replicate";
  modelled.origin = reports::Origin::kModelled;
  modelled.latency.reset();
  modelled.overhead_pct.reset();
  modelled.fault_cost = reports::FaultCost{245.4, 31};
  result.summary.push_back(modelled);
  strikeSlowly(result, 80);
  result.runs[4].load->others_pct = 41;
  result.notes.push_back(reports::busyNote(result.runs));
}

/// The sample as that of a server: in each run ten or more requests in flight at any time, one
/// every 100 ms, of 1.0 and 1.3 s by turns; the last one is lost.
void makeServer(reports::ScenarioResult& result) {
  constexpr int kRequests = 50;
  constexpr double kApartMs = 100;
  constexpr double kLastsMs = 1000;
  result.scenario["workload"]["kind"] = "inference";
  for (reports::Run& run : result.runs) {
    run.iterations.clear();
    for (int id = 0; id < kRequests; ++id) {
      // Not in the order in which they end.
      const double lasts = kLastsMs + (id % 2 == 0 ? 3 * kApartMs : 0);
      run.requests.push_back({.id = id,
                              .rate = 0,
                              .prompt = 10,
                              .output = 5,
                              .fate = "finished",
                              .begun = 1,
                              .arrival_ms = kApartMs * id,
                              .ttft_ms = kApartMs,
                              .tpot_ms = kApartMs,
                              .e2e_ms = lasts});
      run.iterations.push_back({.index = id, .start_ms = kApartMs * id, .ms = lasts});
    }
    run.requests.back().fate = "lost";
    run.requests.back().e2e_ms.reset();
  }
  for (reports::Summary& row : result.summary) {
    reports::RateRow& rate = row.rates.emplace_back();
    rate = {.qps = 10, .requests = 3 * kRequests, .finished = 3 * (kRequests - 1), .lost = 3};
    rate.goodput = 8.2;
    rate.burst_below_requests = 108;
  }
}

/// The sample as that of collective calls: AllReduce and AllGather of 1 and 16 MiB, the smaller
/// ones in the bursts of the ports. hot_repair keeps half, fail_stop 80 %, of at most 96.9 and 87.5
/// %.
void makeCollectives(reports::ScenarioResult& result) {
  result.scenario["workload"]["kind"] = "collective";
  for (reports::Run& run : result.runs) {
    const double slower = run.strategy == "hot_repair" ? 2 : run.strategy == "fail_stop" ? 1.25 : 1;
    for (const char* operation : {"all_reduce", "all_gather"}) {
      const bool reduces = std::string_view(operation) == "all_reduce";
      for (const std::int64_t mib : {1, 16}) {
        reports::CollectiveRow& row = run.collectives.emplace_back();
        row.operation = operation;
        row.size_bytes = mib << 20;
        row.dtype = "f32";
        if (reduces) row.op = "sum";
        row.n = 5;
        row.struck = run.faulted ? row.n : 0;
        row.p50_ms = row.min_ms = row.max_ms = 10 * static_cast<double>(mib) * slower + run.block;
        row.algbw = static_cast<double>(row.size_bytes) / row.p50_ms / 1e6;
        row.busbw = row.algbw * (reduces ? 1.5 : 0.75);
        row.latency_only = mib == 1;
        if (!run.faulted || row.latency_only) continue;
        row.bound = reduces ? 1.032 : 8. / 7;
        row.time_over_bound = slower / *row.bound;
        row.model = 8. / 7;
        row.left_out = run.strategy == "hot_repair" ? 1 : 0;
      }
    }
  }
}

reports::ScenarioResult resultNamed(const std::string& name) {
  if (name == "hostile") return testing::hostileResult();
  if (name == "huge") return testing::hugeResult(20, 50);
  if (name == "huge_sweep") return testing::hugeSweepResult(10);
  reports::ScenarioResult result = testing::sampleResult();
  if (name == "rich") {
    addRichRows(result);
  } else if (name == "server") {
    makeServer(result);
  } else if (name == "collectives") {
    makeCollectives(result);
  } else if (name == "invalid") {
    result.verdict = reports::Verdict::kInvalid;
    result.reason = "port_down left no evidence in block 2 of hot_repair";
    reports::Run& run = result.runs[5];
    run.status = reports::RunStatus::kInvalid;
    run.message = "port_down on node 1, rail 0: the other end kept its carrier";
    for (reports::Evidence& evidence : run.evidence) evidence.ok = false;
  } else if (name == "interrupted") {
    result.verdict = reports::Verdict::kError;
    result.reason = "Ctrl-C";
    result.interrupted = true;
    result.runs.resize(4);
    result.expectations.clear();
  } else if (name == "empty") {
    result = {};
    result.reason = "this machine cannot make network namespaces: unshare: Operation not permitted";
  }
  return result;
}

/// All of them but the huge ones, on one page. Returns the exit code.
int writeSampleOverview(const std::string& directory) {
  std::vector<reports::ScenarioResult> results;
  for (const char* name : {"sample", "rich", "hostile", "invalid", "interrupted", "empty"}) {
    results.push_back(resultNamed(name));
  }
  std::vector<reports::OverviewEntry> entries;
  for (const auto& result : results) entries.push_back({&result, "./sample/report.html"});
  const Status status = reports::writeOverview(entries, directory);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

/// A made-up comparison, with a small picture of three nights. Returns the exit code.
int writeSampleComparison(const std::string& directory) {
  using reports::Change;
  using reports::Comparison;
  Comparison comparison;
  comparison.title = "Nightly trend";
  comparison.base = "results.db";
  comparison.now = "the newest";
  comparison.tolerance_pct = 2;
  comparison.significance = 0.01;
  comparison.min_values = 5;
  comparison.scenarios = {
      {"quickstart", {"pass", "pass"}, {"pass"}, {{"environment.kernel", "6.1", "6.6"}}},
      {"another", {"pass"}, {}, {}}};
  for (const auto& [strategy, difference, p] :
       {std::tuple{"balance", 9.5, 0.02}, std::tuple{"hot_repair", -14.9, 0.00001},
        std::tuple{"optcc", 101.0, 0.3}}) {
    Comparison::Row& row = comparison.rows.emplace_back();
    row.scenario = "quickstart";
    row.strategy = strategy;
    row.metric = "throughput";
    row.unit = "iterations/s";
    row.base = {.n = 10, .median = 12.345, .ci95 = reports::Interval{12.1, 12.6}};
    row.now = {.n = 10, .median = 10.5, .ci95 = std::nullopt};
    row.difference = difference;
    row.difference_unit = "%";
    row.p = p;
    row.change = difference < 0 ? Change::kWorse : Change::kNotDistinguishable;
    row.nights = {{.started_at = "2026-05-01T01:00:00Z",
                   .git = "a",
                   .verdict = "pass",
                   .side = row.base,
                   .compared = true},
                  {.started_at = "2026-05-02T01:00:00Z",
                   .git = "b",
                   .verdict = "pass",
                   .side = row.now,
                   .compared = true}};
  }
  const Status status = reports::writeComparison(comparison, directory, "trend");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace faultline

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(
        stderr,
        "usage: sample_report DIRECTORY "
        "[sample|rich|server|collectives|hostile|huge|huge_sweep|invalid|interrupted|empty|"
        "overview|trend]\n");
    return 2;
  }
  const std::string name = argc > 2 ? argv[2] : "sample";
  if (name == "trend") return faultline::writeSampleComparison(argv[1]);
  if (name == "overview") return faultline::writeSampleOverview(argv[1]);
  const auto result = faultline::resultNamed(name);
  // The other files of a huge result are not thinned: half a gigabyte.
  std::filesystem::create_directories(argv[1]);
  const faultline::Status status =
      name.starts_with("huge") ? faultline::reports::makeHtmlRenderer()->render(result, argv[1])
                               : faultline::reports::renderAll(result, argv[1]);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  std::fputs(faultline::reports::terminalSummary(result, {.report_dir = argv[1]}).c_str(), stdout);
  return 0;
}
