#pragma once

#include <optional>
#include <span>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// Whether the machine was the same at the end as at the beginning, from the fault-free runs that
/// `noise: {drift_check: N}` makes before and after all others, or with `across_blocks: on` from
/// those in the first half of the blocks and in the other (of an odd number the middle one is in
/// neither); and whether it changed too much, or equal runs differed too much, for any speed to
/// mean anything (stats/drift.h). nullopt when the scenario asks for neither. Pure.
std::optional<reports::Drift> driftOf(const scenario::Scenario& scenario,
                                      std::span<const reports::Run> runs);

}  // namespace faultline::run
