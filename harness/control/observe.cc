#include "harness/control/observe.h"

namespace faultline::run {

Observed observedBy(const Sampler& sampler, const std::optional<FaultControl>& faults,
                    TimePoint start) {
  Observed observed;
  observed.rails = sampler.totals();
  observed.railSeries = sampler.series();
  if (!faults) return observed;
  observed.faults = faults->applied(start);
  observed.evidence = faults->evidence();
  observed.invalidBecause = faults->invalidBecause();
  observed.changes = faults->changes();
  return observed;
}

}  // namespace faultline::run
