#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "harness/inference/accounting.h"
#include "harness/scenario/scenario.h"
#include "harness/stats/overhead.h"
#include "harness/workload/rank_config.h"
#include "reports/result.h"

namespace faultline::run {

/// The clients of a server in one run: what they ask for, and what came of it. They outlive the
/// server: after a restart they ask again for what they have not got. Messages in, no clock.
class ServingRecord {
 public:
  /// All rows of a block are asked for the same.
  ServingRecord(const scenario::Scenario& scenario, int block);

  void begun(const nlohmann::json& message);
  void ended(int rank, const nlohmann::json& message);
  /// "rate", "token", "step" or "served".
  void told(int rank, const nlohmann::json& message);

  /// For ranks that start now.
  workload::ServerConfig whatIsLeft() const;
  /// Requests that were begun and are not over.
  int underWay() const;

  /// Adds requests, rates, counters and throughput to the result; `ended`: the run came to its end.
  void finish(reports::Run& run, TimePoint t0, bool ended);

 private:
  struct Entry {
    int rate = 0;
    inference::Request request;
    std::optional<TimePoint> first{};
    std::optional<TimePoint> last{};
    int begun = 0;
  };
  const inference::Serving serving_;
  const std::vector<inference::Arrivals> rates_;
  std::map<int, Entry> requests_;
  std::map<int, TimePoint> starts_;  // by rate
  std::int64_t steps_ = 0;
  std::map<int, double> lateMs_;  // by rank
};

/// Counts, latencies and goodput of some requests of one run. The goodput of requests of several
/// runs is not in it, as their times overlap: addLatencies has it.
reports::RateRow rateRow(std::span<const reports::ServedRequest> requests, double qps);

/// What equal runs (fault_free and its second row) differ by in this latency's median at this rate;
/// nullopt without a second row, or with fewer than stats::kMinPairsForBand pairs.
std::optional<stats::NoiseBand> latencyBand(const scenario::Scenario& scenario,
                                            std::span<const reports::Run> runs, int rate,
                                            std::optional<double> reports::ServedRequest::*which,
                                            std::uint64_t seed);

/// The first so many rates are those that fault_free keeps up with: below its knee, over all
/// blocks.
int ratesKeptUp(std::span<const reports::Run> runs);

/// The first so many rates are told of together, in overheads, noise and latencies of a row: those
/// that fault_free keeps up with, since beyond them requests wait for each other, and each of them
/// for all that any was slower. All where it keeps up with none.
int pooledRates(std::span<const reports::Run> runs);

/// The row of a strategy: by rate, with what its medians cost against fault_free in the same block,
/// and over all rates. Nothing of other workloads.
void addLatencies(const scenario::Scenario& scenario, std::span<const reports::Run> runs,
                  std::uint64_t seed, reports::Summary& row);

}  // namespace faultline::run
