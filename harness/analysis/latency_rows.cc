#include "harness/analysis/latency_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/clock.h"
#include "base/random.h"
#include "harness/analysis/overhead_row.h"
#include "harness/analysis/speed_bound.h"
#include "harness/analysis/summary.h"
#include "harness/baseline/strategy_table.h"
#include "harness/inference/accounting.h"
#include "harness/stats/overhead.h"
#include "harness/stats/quantile.h"

namespace faultline::run {
namespace {

using reports::RateRow;
using reports::Run;
using reports::ServedRequest;

using Latency = std::optional<double> ServedRequest::*;

std::vector<double> latencies(std::span<const ServedRequest> requests, Latency which) {
  std::vector<double> values;
  for (const ServedRequest& request : requests) {
    if (request.*which) values.push_back(*(request.*which));
  }
  return values;
}

/// Of all requests: one that was lost would have taken longer than all others, so that a percentile
/// that falls on it is not known. `n` counts those that have the latency.
reports::Percentiles latencyPercentiles(std::span<const ServedRequest> requests, Latency which) {
  constexpr double kNever = 1e300;
  std::vector<double> times = latencies(requests, which);
  const int known = static_cast<int>(times.size());
  for (const ServedRequest& request : requests) {
    const bool one_token = which == &ServedRequest::tpot_ms && request.output < 2;
    const bool lost = request.fate == nameOf(inference::Fate::kLost);
    if (lost && !one_token && !(request.*which)) times.push_back(kNever);
  }
  reports::Percentiles all = percentilesOf(times);
  for (const auto one : {&reports::Percentiles::p50, &reports::Percentiles::p95,
                         &reports::Percentiles::p99, &reports::Percentiles::max}) {
    // Between one that is known and one that is not, nothing is known either.
    if (all.*one && *(all.*one) > kNever / 1e9) (all.*one).reset();
  }
  all.n = known;
  return all;
}

std::vector<ServedRequest> ofRate(const Run& run, int rate) {
  std::vector<ServedRequest> requests;
  std::ranges::copy_if(run.requests, std::back_inserter(requests),
                       [&](const ServedRequest& request) { return request.rate == rate; });
  return requests;
}

/// Milliseconds from the first arrival of these requests of one run to the last token of any of
/// them; 0 where there was none.
double servedMs(std::span<const ServedRequest> requests) {
  std::optional<double> first;
  std::optional<double> last;
  for (const ServedRequest& request : requests) {
    if (!request.arrival_ms) continue;
    first = std::min(first.value_or(*request.arrival_ms), *request.arrival_ms);
    if (!request.e2e_ms) continue;
    const double end = *request.arrival_ms + *request.e2e_ms;
    last = std::max(last.value_or(end), end);
  }
  return first && last ? *last - *first : 0;
}

/// Good requests per second of the time in which they were served; 0 where there was none.
double goodRequestsPerSecond(int finished, double served_ms) {
  return served_ms > 0 ? finished * kMillisecondsPerSecond / served_ms : 0;
}

/// The median time of a request that has the server almost to itself: of the rate at which it is
/// least, in the runs of fault_free, or of this strategy where there are none.
std::optional<double> unhurriedMs(std::span<const Run> runs, const std::string& strategy) {
  for (const std::string& whose : {std::string(baseline::kReferenceRow), strategy}) {
    std::map<int, std::vector<double>> times;
    for (const Run& run : runs) {
      if (run.strategy != whose) continue;
      for (const ServedRequest& request : run.requests) {
        if (request.e2e_ms) times[request.rate].push_back(*request.e2e_ms);
      }
    }
    std::optional<double> least;
    for (const auto& [rate, all] : times) {
      const double median = *stats::median(all);
      least = std::min(least.value_or(median), median);
    }
    if (least) return least;
  }
  return std::nullopt;
}

/// `requests` at which arrivals of this rate last as long as kRoundsOfARate of these times, if that
/// is more than there are.
std::optional<int> burstBelow(int requests, double qps, std::optional<double> unhurried_ms) {
  // In so many times of a request the batch has been filled and emptied, so that what is told is of
  // the rate and not of the queue that a handful of requests at once makes.
  constexpr double kRoundsOfARate = 4;
  if (!unhurried_ms) return std::nullopt;
  const double needed = std::ceil(kRoundsOfARate * *unhurried_ms * qps / kMillisecondsPerSecond);
  return requests < needed ? std::optional(static_cast<int>(needed)) : std::nullopt;
}

/// This latency of all requests of a strategy beside that of fault_free, block by block.
std::vector<stats::SampleBlock> latencySamples(std::span<const Run> runs,
                                               const std::string& strategy, int rate,
                                               Latency which) {
  std::vector<stats::SampleBlock> blocks;
  for (const Run& run : runs) {
    if (run.strategy != strategy || !comparable(run)) continue;
    const Run* const free = findRun(runs, std::string(baseline::kReferenceRow), run.block);
    if (free == nullptr || !comparable(*free)) continue;
    blocks.push_back({.reference = latencies(ofRate(*free, rate), which),
                      .measured = latencies(ofRate(run, rate), which)});
  }
  return blocks;
}

/// The medians of these, as speeds.
std::vector<stats::Block> latencyBlocks(std::span<const Run> runs, const std::string& strategy,
                                        int rate, Latency which) {
  std::vector<stats::Block> blocks;
  for (const stats::SampleBlock& block : latencySamples(runs, strategy, rate, which)) {
    const auto with = stats::median(block.measured);
    const auto without = stats::median(block.reference);
    if (with && without && *with > 0 && *without > 0) blocks.push_back({1 / *without, 1 / *with});
  }
  return blocks;
}

/// What the 95th percentile costs, held against that of the second row of fault_free.
std::optional<reports::Overhead> p95Cost(const scenario::Scenario& scenario,
                                         std::span<const Run> runs, const std::string& strategy,
                                         int rate, Latency which, std::uint64_t seed) {
  const auto tail = stats::p95Overhead(latencySamples(runs, strategy, rate, which), seed);
  if (!tail) return std::nullopt;
  const auto blocks = latencyBlocks(runs, strategy, rate, which).size();
  reports::Overhead cost{.median = tail->percent, .n = static_cast<int>(blocks)};
  if (!tail->interval95) return cost;
  cost.ci95 = reports::Interval{tail->interval95->low, tail->interval95->high};
  const scenario::Strategy* const second = scenario.secondFaultFree();
  if (second == nullptr) return cost;
  const auto samples = latencySamples(runs, second->name, rate, which);
  const auto equal = stats::p95Overhead(samples, seed);
  if (samples.size() < stats::kMinPairsForBand || !equal || !equal->interval95) return cost;
  const stats::NoiseBand band{.percent = std::abs(equal->percent),
                              .medianPercent = std::max(std::abs(equal->interval95->low),
                                                        std::abs(equal->interval95->high))};
  cost.at_most = stats::atMost(*tail->interval95, band);
  cost.distinguishable = stats::distinguishable(tail->percent, *tail->interval95, band);
  return cost;
}

}  // namespace

std::optional<stats::NoiseBand> latencyBand(const scenario::Scenario& scenario,
                                            std::span<const Run> runs, int rate, Latency which,
                                            std::uint64_t seed) {
  const scenario::Strategy* const second = scenario.secondFaultFree();
  if (second == nullptr) return std::nullopt;
  return stats::noiseBand(latencyBlocks(runs, second->name, rate, which), seed);
}

int ratesKeptUp(std::span<const Run> runs) {
  std::vector<inference::Account> accounts;
  for (const Run& run : runs) {
    if (run.strategy != baseline::kReferenceRow) continue;
    accounts.resize(std::max(accounts.size(), run.rates.size()));
    for (std::size_t rate = 0; rate < run.rates.size(); ++rate) {
      accounts[rate].requests += run.rates[rate].requests;
      accounts[rate].finished += run.rates[rate].finished;
    }
  }
  const int knee = inference::kneeOf(accounts);
  return knee < 0 ? static_cast<int>(accounts.size()) : knee;
}

int pooledRates(std::span<const Run> runs) {
  const int kept = ratesKeptUp(runs);
  return kept > 0 ? kept : std::numeric_limits<int>::max();
}

RateRow rateRow(std::span<const ServedRequest> requests, double qps) {
  RateRow row;
  row.qps = qps;
  row.requests = static_cast<int>(requests.size());
  for (const ServedRequest& request : requests) {
    row.finished += request.fate == nameOf(inference::Fate::kFinished);
    row.late += request.fate == nameOf(inference::Fate::kLate);
    row.lost += request.fate == nameOf(inference::Fate::kLost);
    row.redone += request.begun > 1;
  }
  row.goodput = goodRequestsPerSecond(row.finished, servedMs(requests));
  row.ttft_ms = latencyPercentiles(requests, &ServedRequest::ttft_ms);
  row.tpot_ms = latencyPercentiles(requests, &ServedRequest::tpot_ms);
  row.e2e_ms = latencyPercentiles(requests, &ServedRequest::e2e_ms);
  return row;
}

RateRow rateRow(std::span<const ServedRequest> requests, int rate, double qps) {
  std::vector<ServedRequest> its;
  std::ranges::copy_if(requests, std::back_inserter(its),
                       [&](const ServedRequest& request) { return request.rate == rate; });
  return rateRow(its, qps);
}

void addLatencies(const scenario::Scenario& scenario, std::span<const Run> runs, std::uint64_t seed,
                  reports::Summary& row) {
  std::vector<std::vector<ServedRequest>> byRate;
  std::vector<double> qps;
  std::vector<double> served_ms;  // by rate, of all runs
  const int pooled = pooledRates(runs);
  std::vector<ServedRequest> together;
  int blocks = 0;
  for (const Run& run : runs) {
    if (run.strategy != row.strategy) continue;
    ++blocks;
    byRate.resize(std::max(byRate.size(), run.rates.size()));
    qps.resize(byRate.size());
    served_ms.resize(byRate.size());
    for (std::size_t rate = 0; rate < run.rates.size(); ++rate) {
      qps[rate] = run.rates[rate].qps;
      served_ms[rate] += servedMs(ofRate(run, static_cast<int>(rate)));
    }
    for (const ServedRequest& request : run.requests) {
      byRate[static_cast<std::size_t>(request.rate)].push_back(request);
      if (request.rate < pooled) together.push_back(request);
    }
  }
  if (byRate.empty()) return;
  row.pooled_rates = std::min(pooled, static_cast<int>(byRate.size()));
  const RateRow whole = rateRow(together, 0);
  row.latency = reports::Latency{whole.ttft_ms, whole.tpot_ms, whole.e2e_ms};
  std::vector<inference::Account> accounts;
  const std::optional<double> unhurried = unhurriedMs(runs, row.strategy);
  for (std::size_t rate = 0; rate < byRate.size(); ++rate) {
    RateRow& made = row.rates.emplace_back(rateRow(byRate[rate], qps[rate]));
    made.goodput = goodRequestsPerSecond(made.finished, served_ms[rate]);
    made.burst_below_requests = burstBelow(made.requests / blocks, qps[rate], unhurried);
    accounts.push_back({.requests = made.requests, .finished = made.finished});
    if (row.strategy == baseline::kReferenceRow) continue;
    const int number = static_cast<int>(rate);
    const auto cost = [&](Latency which) {
      const auto compared = latencyBlocks(runs, row.strategy, number, which);
      return overheadRow(stats::overhead(compared, seed),
                         latencyBand(scenario, runs, number, which, seed));
    };
    made.ttft_overhead_pct = cost(&ServedRequest::ttft_ms);
    made.tpot_overhead_pct = cost(&ServedRequest::tpot_ms);
    const auto p95 = [&](Latency which) {
      return p95Cost(scenario, runs, row.strategy, number, which, seed);
    };
    made.ttft_p95_overhead_pct = p95(&ServedRequest::ttft_ms);
    made.tpot_p95_overhead_pct = p95(&ServedRequest::tpot_ms);
  }
  if (const int knee = inference::kneeOf(accounts); knee >= 0) {
    row.knee_qps = qps[static_cast<std::size_t>(knee)];
  }
}

}  // namespace faultline::run
