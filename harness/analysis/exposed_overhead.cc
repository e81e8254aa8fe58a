#include "harness/analysis/exposed_overhead.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/units.h"
#include "harness/analysis/overhead_row.h"
#include "harness/analysis/speed_bound.h"
#include "harness/analysis/summary.h"
#include "harness/baseline/strategy_table.h"
#include "harness/stats/overhead.h"
#include "harness/stats/quantile.h"

namespace faultline::run {
namespace {

std::optional<double> medianExposedMs(const reports::Run& run, double after_ms) {
  std::vector<double> times;
  for (const reports::Iteration& iteration : run.iterations) {
    if (iteration.exposed_ms && iteration.start_ms >= after_ms) {
      times.push_back(*iteration.exposed_ms);
    }
  }
  return stats::median(times);
}

double firstFaultMs(const reports::Run& run) {
  double first = std::numeric_limits<double>::infinity();
  for (const reports::AppliedFault& fault : run.faults) first = std::min(first, fault.start_ms);
  return run.faults.empty() ? -first : first;
}

}  // namespace

std::optional<double> exposedMs(const reports::Run& run) {
  if (!run.restarts.empty() || !run.shrinks.empty()) return std::nullopt;
  return medianExposedMs(run, firstFaultMs(run));
}

std::optional<double> exposedOverheadPercent(const reports::Run& free, const reports::Run& run) {
  constexpr double kWholeRun = -std::numeric_limits<double>::infinity();
  std::vector<double> times;
  for (const reports::Iteration& iteration : free.iterations) times.push_back(iteration.ms);
  const auto time = stats::median(times);
  const auto exposedFree = medianExposedMs(free, kWholeRun);
  const auto exposed = exposedMs(run);
  if (!time || !(*time > 0) || !exposedFree || !exposed) return std::nullopt;
  return kWholeInPercent * (*exposed - *exposedFree) / *time;
}

namespace {

stats::Overhead exposedOf(std::span<const reports::Run> runs, const std::string& strategy,
                          std::uint64_t seed) {
  std::vector<double> blocks;
  for (const reports::Run& run : runs) {
    if (run.strategy != strategy || !comparable(run)) continue;
    const reports::Run* const free = findRun(runs, std::string(baseline::kReferenceRow), run.block);
    if (free == nullptr || !comparable(*free)) continue;
    if (const auto percent = exposedOverheadPercent(*free, run)) blocks.push_back(*percent);
  }
  return stats::overheadOf(std::move(blocks), seed);
}

}  // namespace

std::optional<reports::Overhead> exposedOverhead(const scenario::Scenario& scenario,
                                                 std::span<const reports::Run> runs,
                                                 const std::string& strategy, std::uint64_t seed) {
  const scenario::Strategy* const second = scenario.secondFaultFree();
  return overheadRow(
      exposedOf(runs, strategy, seed),
      second == nullptr ? std::nullopt : stats::noiseBand(exposedOf(runs, second->name, seed)));
}

}  // namespace faultline::run
