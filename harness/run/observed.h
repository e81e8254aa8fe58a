#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "harness/run/damage.h"
#include "harness/run/fault_control.h"
#include "harness/run/goodput_probe.h"
#include "harness/run/sampler.h"
#include "reports/result.h"

namespace faultline::run {

/// What the bench itself saw of a run, beside what its ranks said.
struct Observed {
  std::vector<reports::RailTotals> rails;
  std::vector<reports::RailSeries> railSeries;
  std::vector<reports::AppliedFault> faults;
  std::vector<reports::Evidence> evidence;
  /// Why the faults prove nothing; empty: they do.
  std::string invalidBecause;
  Goodput goodput;       ///< of one rail
  FaultChanges changes;  ///< what the faults did, and when
};

/// Of a run that is over, whatever its workload; `faults`: nothing when it had none. `start`: of
/// the run's clock.
Observed observedBy(const Sampler& sampler, const std::optional<FaultControl>& faults,
                    TimePoint start);

}  // namespace faultline::run
