#include "harness/control/time_left.h"

#include <algorithm>

#include "harness/baseline/strategy_table.h"
#include "harness/scenario/call_time.h"
#include "harness/scenario/fault_list.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::run {
namespace {

using scenario::durationOfSeconds;
using scenario::secondsOfIteration;

// Of a run: to make and take down a cluster and to start, connect and end its processes.
constexpr Duration kSetUpOfARun = 1s;
constexpr Duration kSetUpOfARank = 50ms;
constexpr Duration kSetUpOfALink = 20ms;

Duration setUpOf(const scenario::Cluster& cluster) {
  return kSetUpOfARun + cluster.ranks() * kSetUpOfARank +
         cluster.nodes * cluster.rails * kSetUpOfALink;
}

/// What a job that is killed and started again waits for and does twice.
Duration secondsOfRestarts(const scenario::Scenario& scenario, const PlannedRun& planned) {
  const baseline::StrategySpec* const spec = baseline::findStrategy(planned.strategy->kind());
  if (spec == nullptr || !spec->restarts) return Duration::zero();
  Duration stands{};
  const Duration again =
      kSetUpOfARun +
      durationOfSeconds(secondsOfIteration(scenario) *
                        static_cast<double>(planned.strategy->options.get<std::int64_t>(
                            baseline::kCheckpointEvery)) /
                        2);
  for (const scenario::Fault& fault : scenario::allFaults(scenario)) {
    const Duration watchdog = planned.strategy->options.get<Duration>(baseline::kWatchdog);
    stands += fault.times * (std::max(fault.duration.value_or(watchdog), watchdog) + again);
  }
  return stands;
}

Duration longestRun(const scenario::Scenario& scenario) {
  const auto longest = scenario.workload.kind->longest;
  return (longest == nullptr ? scenario.limits.deadline : longest(scenario)) +
         setUpOf(scenario.cluster);
}

}  // namespace

std::optional<Duration> estimatedRun(const scenario::Scenario& scenario,
                                     const PlannedRun& planned) {
  const scenario::Workload& workload = scenario.workload;
  if (workload.kind->estimate == nullptr) return std::nullopt;
  Duration work = workload.kind->estimate(scenario, planned.block);
  if (workload.time) work = std::min(work, *workload.time);
  if (planned.arm == reports::Arm::kFaulted) work += secondsOfRestarts(scenario, planned);
  return std::min(work + setUpOf(scenario.cluster), longestRun(scenario));
}

int iterationsOf(const scenario::Scenario& scenario) {
  const auto iterations = scenario.workload.kind->iterations;
  return iterations == nullptr ? 0 : iterations(scenario.workload);
}

TimeEstimate estimateOf(const scenario::Scenario& scenario, std::span<const PlannedRun> plan) {
  return {TimeLeft(scenario, plan).expected(0, plan.size()),
          static_cast<int>(plan.size()) * longestRun(scenario)};
}

TimeLeft::TimeLeft(const scenario::Scenario& scenario, std::span<const PlannedRun> plan) {
  for (const PlannedRun& planned : plan) {
    runs_.push_back({planned.strategy->name, estimatedRun(scenario, planned)});
  }
}

void TimeLeft::finished(std::size_t run, Duration took) {
  Sum& own = done_[runs_[run].strategy];
  for (Sum* const sum : {&own, &all_}) {
    sum->took += took;
    ++sum->runs;
  }
  estimates_ += runs_[run].estimate.value_or(Duration::zero());
}

std::optional<Duration> TimeLeft::expected(std::size_t run) const {
  const Entry& entry = runs_[run];
  if (const auto own = done_.find(entry.strategy); own != done_.end()) {
    return own->second.took / own->second.runs;
  }
  if (all_.runs == 0) return entry.estimate;
  if (!entry.estimate || estimates_ <= Duration::zero()) return all_.took / all_.runs;
  const auto number = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  return durationOfSeconds(number(*entry.estimate) * number(all_.took) / number(estimates_));
}

std::optional<Duration> TimeLeft::expected(std::size_t first, std::size_t last) const {
  Duration sum{};
  for (std::size_t run = first; run < last; ++run) {
    const auto one = expected(run);
    if (!one) return std::nullopt;
    sum += *one;
  }
  return sum;
}

}  // namespace faultline::run
