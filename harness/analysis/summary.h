#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/scenario/scenario.h"
#include "harness/stats/overhead.h"
#include "reports/result.h"

namespace faultline::run {

/// The table of strategies, in the scenario's order. Only completed runs (speed_bound.h) have a
/// speed; overheads are computed within a block against the fault_free run of the same block, held
/// against the noise of equal runs (noise.h) where that is known, and what too few samples cannot
/// say is absent. `seed` makes the intervals repeatable. Pure.
std::vector<reports::Summary> summarise(const scenario::Scenario& scenario,
                                        std::span<const reports::Run> runs, std::uint64_t seed);

/// Work per time: the throughput; of a server, whose arrivals nobody slows down, what the mean time
/// from a request's arrival to its last token allows one client in a second, over the requests of
/// the first so many `rates` (pooledRates). nullopt: the run was not completed.
std::optional<double> speedOf(const reports::Run& run, int rates);

/// The blocks in which both the strategy's run and that of fault_free have a speed.
std::vector<stats::Block> blocksOf(std::span<const reports::Run> runs, const std::string& strategy);

/// A distribution as results have it; what so few values cannot say is absent.
reports::Percentiles percentilesOf(std::span<const double> values);

/// Pauses of all failovers of a strategy's faulted runs; nothing without any.
std::optional<reports::Percentiles> pausesOf(std::span<const reports::Run> runs,
                                             const std::string& strategy);

/// The run of a strategy in a block, or null.
const reports::Run* findRun(std::span<const reports::Run> runs, const std::string& strategy,
                            int block);

}  // namespace faultline::run
