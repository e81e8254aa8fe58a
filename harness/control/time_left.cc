#include "harness/control/time_left.h"

#include <algorithm>

#include "harness/baseline/strategy_table.h"
#include "harness/inference/serving.h"
#include "harness/scenario/fault_list.h"
#include "harness/scenario/sweep.h"

namespace faultline::run {
namespace {

// Of a run: to make and take down a cluster and to start, connect and end its processes.
constexpr Duration kSetUpOfARun = 1s;
constexpr Duration kSetUpOfARank = 50ms;
constexpr Duration kSetUpOfALink = 20ms;
constexpr double kBitsOfAByte = 8;

Duration ofSeconds(double value) {
  constexpr double kLongest = 1e9;  // 30 years: beyond them nobody reads the number
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::clamp(value, 0.0, kLongest)));
}

Duration setUpOf(const scenario::Cluster& cluster) {
  return kSetUpOfARun + cluster.ranks() * kSetUpOfARank +
         cluster.nodes * cluster.rails * kSetUpOfALink;
}

/// Share of its data that a call sends through a node's rails: what each rank of a ring sends.
double sentShare(schedule::Collective operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (operation) {
    case schedule::Collective::kAllReduce:
      return 2 * others;
    case schedule::Collective::kReduceScatter:
    case schedule::Collective::kAllGather:
    case schedule::Collective::kAllToAll:
      return others;
    case schedule::Collective::kBroadcast:
    case schedule::Collective::kReduce:
    case schedule::Collective::kSendRecv:
      return 1;
  }
  return 1;
}

double secondsOfCall(const scenario::Cluster& cluster, schedule::Collective operation, Bytes size) {
  const double rate = static_cast<double>(cluster.railRate) * cluster.rails;
  return sentShare(operation, cluster.ranks()) * static_cast<double>(size) * kBitsOfAByte / rate;
}

double secondsOfSweep(const scenario::Scenario& scenario) {
  double sum = 0;
  for (const scenario::SweepCell& cell : scenario::cellsOf(scenario.workload.collective)) {
    sum += secondsOfCall(scenario.cluster, cell.operation, cell.size);
  }
  return sum * (scenario.workload.iterations + scenario.workload.warmupIterations);
}

/// One iteration of training: communication of a bucket goes on while the next is computed.
double secondsOfIteration(const scenario::Scenario& scenario) {
  const scenario::Workload& workload = scenario.workload;
  const double compute = std::chrono::duration<double>(workload.compute.duration).count();
  const double network =
      secondsOfCall(scenario.cluster, schedule::Collective::kAllReduce, workload.gradient.size);
  return std::max(compute, network) +
         std::min(compute, network) / std::max(1, workload.gradient.buckets);
}

/// What a job that is killed and started again waits for and does twice.
Duration secondsOfRestarts(const scenario::Scenario& scenario, const PlannedRun& planned) {
  const baseline::StrategySpec* const spec = baseline::findStrategy(planned.strategy->kind());
  if (spec == nullptr || !spec->restarts) return Duration::zero();
  Duration stands{};
  const Duration again =
      kSetUpOfARun + ofSeconds(secondsOfIteration(scenario) *
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
  const bool foreign = scenario.workload.isForeign();
  const Duration limit =
      foreign ? scenario.workload.command.timeLimit.value_or(scenario.limits.deadline)
              : scenario.limits.deadline;
  return limit + setUpOf(scenario.cluster);
}

}  // namespace

std::optional<Duration> estimatedRun(const scenario::Scenario& scenario,
                                     const PlannedRun& planned) {
  const scenario::Workload& workload = scenario.workload;
  if (workload.isForeign()) return std::nullopt;
  Duration work{};
  if (workload.serves()) {
    work = inference::arrivingTime(
        inference::arrivalsOf(*workload.serving, scenario.seed, planned.block));
  } else if (workload.sweeps()) {
    work = ofSeconds(secondsOfSweep(scenario));
  } else {
    work =
        ofSeconds(secondsOfIteration(scenario) * (workload.iterations + workload.warmupIterations));
  }
  if (workload.time) work = std::min(work, *workload.time);
  if (planned.arm == reports::Arm::kFaulted) work += secondsOfRestarts(scenario, planned);
  return std::min(work + setUpOf(scenario.cluster), longestRun(scenario));
}

int iterationsOf(const scenario::Scenario& scenario) {
  const scenario::Workload& workload = scenario.workload;
  if (workload.isForeign()) return 0;  // its own
  const auto cells =
      workload.sweeps() ? scenario::cellsOf(workload.collective).size() : std::size_t{1};
  return workload.iterations * static_cast<int>(cells);
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
  return ofSeconds(number(*entry.estimate) * number(all_.took) / number(estimates_));
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
