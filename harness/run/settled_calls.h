#pragma once

#include <cstdint>
#include <set>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// A plan is for what is left of the ports when no port's health is further from it than this:
/// bandwidths are measured, and rounded.
inline constexpr double kHealthTolerance = 0.1;

/// The plan that a collective of `elements` elements of data in `bytes` bytes used, if it ended at
/// `end_ms`: the latest for its size. nullptr: none was told.
const reports::AppliedPlan* planInUse(const reports::Run& run, schedule::Collective operation,
                                      std::int64_t elements, std::int64_t bytes, double end_ms);

/// The iterations of a sweep whose calls a strategy that plans made before it knew what the network
/// had: without a plan that fits the ports, or with one that was being tried, or was made in this
/// very call. Of a collective besides AllReduce those before its last plan with another algorithm,
/// or with another order of a chain. Decided by plans and faults alone, never by how long a call
/// took. Of other strategies, and of collectives that are not planned, there are none. Where there
/// is no model of the faults, only calls for which a plan was made. Pure.
std::set<int> unsettledCalls(const scenario::Scenario& scenario, const reports::Run& run);

}  // namespace faultline::run
