#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// The median of `Iteration::exposed_ms` over the run's iterations that began after its first fault
/// (all, without faults). nullopt: nothing is known of exposure, no iteration began after the
/// fault, or the job lost work (restarts, ranks left out), which is no exposure.
std::optional<double> exposedMs(const reports::Run& run);

/// What a strategy's faults add to the time that computing stands still for communication:
/// (e - e0) / T0, in percent. e is `exposedMs` of the run, e0 and T0 are the medians of all
/// iterations of the fault-free run of the same block. The noise of everything that computes is not
/// in it; nor are iterations that stood still for a failover, as long as they are fewer than half.
/// nullopt: one of the three is not known.
std::optional<double> exposedOverheadPercent(const reports::Run& free, const reports::Run& run);

/// The median of the blocks of a row, and its interval, held against what equal runs differ by in
/// the same where there is a second row of fault_free; nullopt where no block has one.
std::optional<reports::Overhead> exposedOverhead(const scenario::Scenario& scenario,
                                                 std::span<const reports::Run> runs,
                                                 const std::string& strategy, std::uint64_t seed);

}  // namespace faultline::run
