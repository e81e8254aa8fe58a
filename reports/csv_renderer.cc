#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "reports/csv_line.h"
#include "reports/renderer.h"
#include "reports/text.h"

namespace faultline::reports {
namespace {

constexpr const char* kHeader =
    "scenario,seed,strategy,block,arm,faulted,status,message,iterations,iteration_ms_median,"
    "duration_ms,throughput,throughput_unit,wrong_elements,checked_elements,digest,faults,"
    "evidence,evidence_ok,failovers,failover_pause_ms_max,resent_bytes,duplicate_bytes,failbacks,"
    "restarts,hang_ms,isolate_ms,load_ms,lost_iterations,tx_bytes,rx_bytes,checkpoint_ms,plans,"
    "planned_algorithm,degradations,requests,finished,late,lost,redone,ttft_ms_median,"
    "tpot_ms_median,e2e_ms_median,after_pct,back_to_95_pct_ms,void_because,operation,size,time_ms,"
    "algbw,busbw,";

constexpr std::size_t kCallColumns = 5;  // from "operation" to "busbw"

/// How many columns there are before those of a collective call.
std::size_t columnsBeforeCall() {
  const std::string_view header = kHeader;
  return static_cast<std::size_t>(
      std::ranges::count(header.substr(0, header.find("operation,")), ','));
}

double medianOf(std::vector<double> times) {
  if (times.empty()) return std::nan("");
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  if (times.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(times.begin(), middle)) / 2;
}

/// Nothing of a run that ended early: it would be of the iterations that went well.
double medianIteration(const Run& run) {
  if (run.unfinished) return std::nan("");
  std::vector<double> times;
  for (const Iteration& iteration : run.iterations) times.push_back(iteration.ms);
  return medianOf(std::move(times));
}

void addRecovery(CsvLine& line, const Run& run) {
  double longest = std::nan("");
  std::int64_t resent = 0;
  std::int64_t duplicate = 0;
  for (const Failover& failover : run.failovers) {
    longest = std::fmax(longest, failover.pause_ms);
    resent += failover.resent_bytes;
    duplicate += failover.duplicate_bytes;
  }
  Restart sum;
  for (const Restart& restart : run.restarts) {
    sum.hang_ms += restart.hang_ms;
    sum.isolate_ms += restart.isolate_ms;
    sum.load_ms += restart.load_ms;
    sum.lost_iterations += restart.lost_iterations;
  }
  line.add(run.failovers.size());
  line.add(longest);
  line.add(resent);
  line.add(duplicate);
  line.add(run.failbacks.size());
  line.add(run.restarts.size());
  line.add(sum.hang_ms);
  line.add(sum.isolate_ms);
  line.add(sum.load_ms);
  line.add(sum.lost_iterations);
}

/// Of the rates whose latencies are told together: all, where the result does not say which.
bool toldTogether(const ScenarioResult& result, const Run& run, const ServedRequest& request) {
  const auto row = std::ranges::find(result.summary, run.strategy, &Summary::strategy);
  const auto rates = row == result.summary.end() ? std::nullopt : row->pooled_rates;
  return !rates || request.rate < *rates;
}

/// Empty cells where nobody asked for anything. Counts are of all rates.
void addRequests(CsvLine& line, const ScenarioResult& result, const Run& run) {
  constexpr std::array kCounts{&RateRow::requests, &RateRow::finished, &RateRow::late,
                               &RateRow::lost, &RateRow::redone};
  for (const auto count : kCounts) {
    int sum = 0;
    for (const RateRow& rate : run.rates) sum += rate.*count;
    if (run.requests.empty()) {
      line.addNothing();
    } else {
      line.add(sum);
    }
  }
  constexpr std::array kLatencies{&ServedRequest::ttft_ms, &ServedRequest::tpot_ms,
                                  &ServedRequest::e2e_ms};
  for (const auto latency : kLatencies) {
    std::vector<double> times;
    for (const ServedRequest& request : run.requests) {
      if (!toldTogether(result, run, request)) continue;
      if (request.*latency) times.push_back(*(request.*latency));
    }
    line.add(medianOf(std::move(times)));
  }
}

/// "inf" of a run that was not back: a number to who reads the column, and no empty cell.
void addAfterFault(CsvLine& line, const Run& run) {
  line.add(run.after_pct.value_or(std::nan("")));
  if (run.after_fault && !run.back_to_95_pct_ms) {
    line.add("inf");
  } else {
    line.add(run.back_to_95_pct_ms.value_or(std::nan("")));
  }
  line.add(run.void_because);
}

/// Empty cells where there is no one call.
void addCall(CsvLine& line, const CollectiveRow* call) {
  if (call == nullptr) {
    for (std::size_t i = 0; i < kCallColumns; ++i) line.addNothing();
    return;
  }
  line.add(call->operation);
  line.add(call->size_bytes);
  line.add(call->p50_ms);
  line.add(call->algbw);
  line.add(call->busbw);
}

std::string exitCodes(const Run& run) {
  std::string codes;
  for (const ProgramEnd& end : run.processes) {
    codes += fmt::format("{}{}", codes.empty() ? "" : " ", end.exit_code);
  }
  return codes;
}

/// What tells rows apart, and whether the run counts.
void addKey(CsvLine& line, const ScenarioResult& result, const Run& run) {
  line.add(scenarioName(result));
  line.add(result.seed);
  line.add(run.strategy);
  line.add(run.block);
  line.add(nameOf(run.arm));
  line.add(run.faulted ? "true" : "false");
  line.add(nameOf(run.status));
}

std::string lineOf(const ScenarioResult& result, const Run& run,
                   const std::set<std::string>& metrics, bool withOrigin) {
  CsvLine line;
  addKey(line, result, run);
  line.add(run.message);
  line.add(run.iterations.size());
  line.add(medianIteration(run));
  line.add(run.duration_ms);
  if (run.throughput) {
    line.add(run.throughput->value);
    line.add(run.throughput->unit);
  } else {
    line.addNothing();
    line.addNothing();
  }
  line.add(run.wrong_elements);
  line.add(run.checked_elements);
  line.add(run.digest);
  line.add(run.faults.size());
  line.add(run.evidence.size());
  line.add(std::count_if(run.evidence.begin(), run.evidence.end(),
                         [](const Evidence& evidence) { return evidence.ok; }));
  addRecovery(line, run);
  std::int64_t tx = 0;
  std::int64_t rx = 0;
  for (const RailTotals& rail : run.rails) {
    tx += rail.tx_bytes;
    rx += rail.rx_bytes;
  }
  line.add(tx);
  line.add(rx);
  line.add(run.checkpoint_ms);
  line.add(run.plans.size());
  const AppliedPlan* const plan = lastPlanOfLargest(run);
  line.add(plan == nullptr ? "" : plan->algorithm);
  line.add(run.degradations.size());
  addRequests(line, result, run);
  addAfterFault(line, run);
  addCall(line, run.collectives.size() == 1 ? &run.collectives.front() : nullptr);
  line.add(exitCodes(run));
  for (const std::string& name : metrics) {
    const auto found = run.metrics.find(name);
    line.add(found == run.metrics.end() ? std::nan("") : found->second.value);
  }
  if (withOrigin) {
    line.addNothing();
    line.addNothing();
    line.add(nameOf(Origin::kMeasured));
    line.addNothing();
  }
  return std::move(line).finish();
}

/// One kind of call of a run with several. Everything else of the run is in its own row, so that
/// sums over a column count it once.
std::string callLine(const ScenarioResult& result, const Run& run, const CollectiveRow& call,
                     std::size_t columns, bool withOrigin) {
  CsvLine line;
  addKey(line, result, run);
  constexpr std::size_t kKey = 7, kOriginFromEnd = 2;
  const std::size_t before = columnsBeforeCall();
  for (std::size_t i = kKey; i < before; ++i) line.addNothing();
  addCall(line, &call);
  for (std::size_t i = before + kCallColumns; i < columns; ++i) {
    if (withOrigin && i + kOriginFromEnd == columns) {
      line.add(nameOf(Origin::kMeasured));
    } else {
      line.addNothing();
    }
  }
  return std::move(line).finish();
}

/// A row that no run stands behind: only what it is called, and what its model comes to.
std::string modelledLine(const ScenarioResult& result, const Summary& row, std::size_t columns) {
  CsvLine line;
  line.add(scenarioName(result));
  line.add(result.seed);
  line.add(row.strategy);
  constexpr std::size_t kBefore = 3, kLast = 4;
  for (std::size_t i = kBefore + kLast; i < columns; ++i) line.addNothing();
  line.add(row.fault_cost ? row.fault_cost->seconds : std::nan(""));
  line.add(row.fault_cost ? row.fault_cost->requests.value_or(std::nan("")) : std::nan(""));
  line.add(nameOf(row.origin));
  line.add(row.overhead_pct ? row.overhead_pct->median : std::nan(""));
  return std::move(line).finish();
}

/// A row per run: strategy, block and arm are its key, as tools that compare tables want it. Behind
/// that of a run with several kinds of collective calls a row for each of them. Behind them all a
/// row per modelled strategy, if there is one, with four columns of its own at the end.
class CsvRenderer final : public Renderer {
 public:
  const char* name() const override { return "csv"; }
  const char* fileName() const override { return "results.csv"; }
  std::string text(const ScenarioResult& result) const override {
    const std::set<std::string> metrics = metricNames(result);
    CsvLine last_columns;
    last_columns.add("exit_codes");
    for (const std::string& name : metrics) last_columns.add("metric_" + name);
    const bool modelled =
        std::ranges::count(result.summary, Origin::kModelled, &Summary::origin) > 0;
    if (modelled) {
      last_columns.add("modelled_fault_s");
      last_columns.add("modelled_fault_requests");
      last_columns.add("origin");
      last_columns.add("modelled_overhead_pct");
    }
    const std::string header = kHeader + std::move(last_columns).finish();
    std::string text = header;
    const auto columns = static_cast<std::size_t>(std::ranges::count(header, ',')) + 1;
    for (const Run& run : result.runs) {
      text += lineOf(result, run, metrics, modelled);
      if (run.collectives.size() < 2) continue;
      for (const CollectiveRow& call : run.collectives) {
        text += callLine(result, run, call, columns, modelled);
      }
    }
    for (const Summary& row : result.summary) {
      if (row.origin == Origin::kModelled) text += modelledLine(result, row, columns);
    }
    return text;
  }
};

}  // namespace

std::unique_ptr<Renderer> makeCsvRenderer() { return std::make_unique<CsvRenderer>(); }

}  // namespace faultline::reports
