#include "harness/analysis/overhead_row.h"

namespace faultline::run {

std::optional<reports::Overhead> overheadRow(const stats::Overhead& overhead,
                                             const std::optional<stats::NoiseBand>& band) {
  if (!overhead.median) return std::nullopt;
  reports::Overhead row{.median = *overhead.median, .n = static_cast<int>(overhead.n)};
  if (!overhead.interval95) return row;
  const stats::Interval& interval = *overhead.interval95;
  row.ci95 = reports::Interval{interval.low, interval.high};
  if (!band) return row;
  row.at_most = stats::atMost(interval, *band);
  row.distinguishable = stats::distinguishable(row.median, interval, *band);
  return row;
}

}  // namespace faultline::run
