#pragma once

#include <cstdint>
#include <set>
#include <vector>

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

/// The iterations of a run that a fault met: it was there before they ended, and after they had
/// begun. The one that the run's end cut off is among them. Pure.
std::set<int> struckCalls(const reports::Run& run);

/// What is known of the calls of a run.
struct CallFates {
  std::set<int> unsettled;
  std::set<int> struck;
};
CallFates fatesOf(const scenario::Scenario& scenario, const reports::Run& run);

/// The calls of a row whose times count, in their order; the rest as in reports::CollectiveRow.
struct CountedCalls {
  std::vector<int> calls;
  int leftOut = 0;
  bool unsettled = false;
  int untouched = 0;
  int struck = 0;
};
/// Of the calls of a row, in their order: where a fault met some of them, those. What is settled is
/// asked only of a network that stays as it is until the row's last call. Pure.
CountedCalls countedOf(const std::vector<int>& calls, const CallFates& fates);

}  // namespace faultline::run
