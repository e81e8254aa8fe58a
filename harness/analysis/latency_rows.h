#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "harness/scenario/scenario.h"
#include "harness/stats/overhead.h"
#include "reports/result.h"

namespace faultline::run {

/// Counts, latencies and goodput of some requests of one run. The goodput of requests of several
/// runs is not in it, as their times overlap: addLatencies has it.
reports::RateRow rateRow(std::span<const reports::ServedRequest> requests, double qps);

/// The same of those of one rate of a run, which asked for `qps`.
reports::RateRow rateRow(std::span<const reports::ServedRequest> requests, int rate, double qps);

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
