#include "harness/record/command_record.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "base/units.h"
#include "harness/baseline/strategy_table.h"

namespace faultline::run {
namespace {

constexpr int kSignalBase = 128;  // as shells do
constexpr double kSecond = 1000;

}  // namespace

CommandRecord::CommandRecord(const scenario::Scenario& scenario, const PlannedRun& planned)
    : scenario_(scenario) {
  run_.strategy = planned.strategy->name;
  run_.kind = planned.strategy->kind();
  if (!planned.strategy->environment.empty()) {
    run_.options[baseline::rowEnvironmentSpec().name] = planned.strategy->environment;
  }
  if (planned.strategy->options.has(baseline::kMode)) {
    const std::string mode = planned.strategy->options.get<std::string>(baseline::kMode);
    run_.options[baseline::kMode] = mode;
    if (baseline::rebuildsItself(mode)) {
      run_.options[baseline::kWait] =
          formatDuration(planned.strategy->options.get<Duration>(baseline::kWait));
    }
  }
  run_.block = planned.block;
  run_.arm = planned.arm;
  run_.faulted = planned.arm == reports::Arm::kFaulted && scenario.hasFaults();
}

void CommandRecord::add(const RunEvent& event) {
  const auto with = [&]<typename T>(const T& one) {
    if constexpr (std::is_same_v<T, event::Started>) {
      started(one.at);
    } else if constexpr (std::is_same_v<T, event::Progressed>) {
      progressed(one.rank, one.iteration, one.at);
    } else if constexpr (std::is_same_v<T, event::ProgramEnded>) {
      ended(one);
    } else if constexpr (std::is_same_v<T, event::Failed>) {
      failed(one.status, one.message);
    } else if constexpr (std::is_same_v<T, event::Told>) {
      told(one);
    } else if constexpr (std::is_same_v<T, event::Rebuilt>) {
      rebuilt(one.made, one.fault);
    } else if constexpr (std::is_same_v<T, event::Invalid>) {
      invalid(one.because);
    }
  };
  std::visit(with, event);
}

void CommandRecord::progressed(int rank, int iteration, TimePoint when) {
  const auto [latest, first] = latest_.try_emplace(rank, iteration);
  const bool back = !first && iteration < latest->second;
  latest->second = iteration;
  // A process that only lags behind the furthest one changes nothing.
  if (open_ && (iteration == open_->index || (iteration < open_->index && !back))) return;
  if (open_ && iteration < open_->index) {
    interruptIteration(when);
  } else {
    closeIteration(when);
  }
  open_ = Iteration{.index = iteration, .begin = when};
  if (const auto before = interrupted_.extract(iteration)) {
    open_->begin = before.mapped().begin;
    open_->attempts = before.mapped().attempts + 1;
  }
}

void CommandRecord::interruptIteration(TimePoint when) {
  open_->end = when;
  interrupted_.insert_or_assign(open_->index, *open_);
  open_.reset();
}

void CommandRecord::closeIteration(TimePoint when) {
  if (!open_) return;
  open_->end = when;
  done_.push_back(*open_);
  open_.reset();
}

reports::Iteration CommandRecord::entryOf(const Iteration& iteration) const {
  return {.index = iteration.index,
          .start_ms = sinceStart(iteration.begin),
          .ms = toMilliseconds(iteration.end - iteration.begin),
          .attempts = iteration.attempts};
}

/// Of a run that came to its end, those that it did not begin again lasted until it went back. Of
/// another one the oldest, or the one that is open, is what it never ended.
void CommandRecord::addIterations() {
  for (const Iteration& iteration : done_) run_.iterations.push_back(entryOf(iteration));
  if (!hasFailed()) {
    for (const auto& [index, iteration] : interrupted_) {
      run_.iterations.push_back(entryOf(iteration));
    }
    return;
  }
  std::optional<Iteration> oldest = open_;
  for (const auto& [index, iteration] : interrupted_) {
    if (!oldest || iteration.begin < oldest->begin) oldest = iteration;
  }
  if (!oldest) return;
  run_.unfinished = entryOf(*oldest);
  run_.unfinished->ms = std::max(0.0, run_.duration_ms - run_.unfinished->start_ms);
}

void CommandRecord::ended(const event::ProgramEnded& end) {
  ends_.push_back(end);
  const bool last = endedProcesses() == scenario_.workload.command.processes();
  if (last && !hasFailed()) closeIteration(std::max(t0_, end.at));
}

void CommandRecord::addEnds() {
  for (const event::ProgramEnded& end : ends_) {
    const double at = sinceStart(std::max(t0_, end.at));
    run_.processes.push_back({.rank = end.rank,
                              .node = end.node,
                              .exit_code = end.signal == 0 ? end.code : kSignalBase + end.signal,
                              .signal = end.signal,
                              .at_ms = at,
                              .output = end.output});
    run_.duration_ms = std::max(run_.duration_ms, at);
  }
  std::ranges::sort(run_.processes, {}, &reports::ProgramEnd::rank);
}

void CommandRecord::failed(reports::RunStatus status, const std::string& message) {
  if (hasFailed()) return;  // the first reason counts
  run_.status = status;
  run_.message = message;
}

void CommandRecord::told(const event::Told& told) {
  run_.metrics = told.numbers;
  if (!told.problem.empty()) invalid(told.problem);
}

void CommandRecord::invalid(const std::string& because) {
  if (invalid_.empty()) invalid_ = because;
}

void CommandRecord::rebuilt(const command::Rebuildings::Rebuilding& made,
                            std::optional<TimePoint> fault) {
  rebuilt_.push_back({.made = made, .fault = fault, .iteration = open_ ? open_->index : 0});
}

void CommandRecord::addRebuilt() {
  for (const auto& [made, fault, iteration] : rebuilt_) {
    std::vector<reports::Shrink>& all = made.missing.empty() ? run_.rebuilds : run_.shrinks;
    reports::Shrink& entry = all.emplace_back();
    if (fault) entry.fault_ms = sinceStart(*fault);
    entry.noticed_ms = sinceStart(made.noticed);
    entry.resumed_ms = sinceStart(made.resumed);
    entry.ranks = made.ranks;
    entry.missing = made.missing;
    entry.iteration = iteration;
  }
}

void CommandRecord::addThroughput() {
  const std::string& metric = scenario_.workload.command.throughput;
  if (hasFailed()) return;
  if (metric.empty()) {
    // How long programs take that never ran at the same time says nothing of the job.
    const bool together =
        std::ranges::all_of(ends_, [&](const event::ProgramEnded& end) { return end.at > t0_; });
    if (run_.duration_ms > 0 && together)
      run_.throughput = reports::Quantity{kSecond / run_.duration_ms, "runs/s"};
    return;
  }
  const auto found = run_.metrics.find(metric);
  if (found != run_.metrics.end() && found->second.value > 0) run_.throughput = found->second;
}

RecordedRun CommandRecord::finish(Observed observed) {
  addEnds();
  addIterations();
  addRebuilt();
  addThroughput();
  run_.rails = std::move(observed.rails);
  run_.rail_series = std::move(observed.railSeries);
  run_.faults = std::move(observed.faults);
  run_.evidence = std::move(observed.evidence);
  const std::string& problem = observed.invalidBecause.empty() ? invalid_ : observed.invalidBecause;
  if (!problem.empty() && run_.status != reports::RunStatus::kFailed) {
    run_.status = reports::RunStatus::kInvalid;
    run_.message = problem;
  }
  return {.run = std::move(run_)};
}

}  // namespace faultline::run
