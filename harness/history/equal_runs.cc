#include "harness/history/equal_runs.h"

#include <algorithm>
#include <cmath>

namespace faultline::history {

double equalRunsPercent(const reports::ScenarioResult& result) {
  if (result.noise) return result.noise->median_band_pct;
  if (!result.drift) return 0;
  return std::max(result.drift->spread_pct.value_or(0),
                  std::abs(result.drift->drift_pct.value_or(0)));
}

}  // namespace faultline::history
