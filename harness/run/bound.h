#pragma once

#include <optional>
#include <span>
#include <string>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// True when a run did its work to the end, so that its speed means something: it is ok, or it hung
/// as fail-stop must and went on after a restart.
bool completed(const reports::Run& run);

/// The same of runs that prove nothing: all results are there.
bool didAllWork(const reports::Run& run);

/// `bound_pct` of a strategy's row: what the faults of its runs, at the moments at which they were
/// really applied, would cost the best possible algorithm (baseline/bound_model.h; the fault-free
/// iteration and the gap between iterations are medians of the fault_free runs). Median over the
/// completed runs, in percent. nullopt for fault_free itself and where there is no model: no
/// completed fault_free run, another workload than training, a fault that the model does not know,
/// a job that could never end. Pure.
std::optional<double> boundPercent(const scenario::Scenario& scenario,
                                   std::span<const reports::Run> runs, const std::string& strategy);

}  // namespace faultline::run
