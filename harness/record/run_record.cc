#include "harness/record/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "harness/baseline/strategy_table.h"
#include "harness/scenario/workload_kind.h"
#include "harness/workload/digest.h"

namespace faultline::run {
namespace {

// What production jobs use (PyTorch's process-group watchdog), for comparison.
constexpr double kUnscaledWatchdogMs = 600'000;

std::pair<TimePoint, int> inOrderOfEnds(const IterationTable::Row& row) {
  return {row.end, row.index};
}

}  // namespace

RunRecord::RunRecord(const scenario::Scenario& scenario, const PlannedRun& planned)
    : scenario_(scenario),
      table_(scenario.cluster.ranks()),
      calls_(scenario),
      rails_(scenario.cluster) {
  if (scenario.workload.kind->hasRequests) {
    // Runs of the drift check are held against each other, so they are asked for the same.
    const bool checks_drift = planned.strategy->name == scenario::NoiseLimits::kDriftRow;
    serving_.emplace(scenario, checks_drift ? 0 : planned.block);
  }
  run_.strategy = planned.strategy->name;
  run_.kind = planned.strategy->kind();
  for (const auto& [name, value] : planned.strategy->options.all()) {
    if (name == baseline::kContent) continue;  // the scenario has it, once for all runs
    run_.options[name] = formatParameter(value);
  }
  run_.block = planned.block;
  run_.arm = planned.arm;
  run_.faulted = planned.arm == reports::Arm::kFaulted && scenario.hasFaults();
}

void RunRecord::add(const RunEvent& event) {
  const auto with = [&]<typename T>(const T& one) {
    if constexpr (std::is_same_v<T, event::Started>) {
      started(one.at);
    } else if constexpr (std::is_same_v<T, event::Heard>) {
      heard(one.rank, one.at, one.message);
    } else if constexpr (std::is_same_v<T, event::Hung>) {
      hung(one.at, one.hang);
    } else if constexpr (std::is_same_v<T, event::Crashed>) {
      crashed(one.message);
    } else if constexpr (std::is_same_v<T, event::CutOff>) {
      cutOff(one.at, one.fault);
    } else if constexpr (std::is_same_v<T, event::Repaired>) {
      repaired(one.at);
    } else if constexpr (std::is_same_v<T, event::Reloaded>) {
      reloaded(one.at);
    } else if constexpr (std::is_same_v<T, event::Failed>) {
      failed(one.at, one.status, one.message);
    } else if constexpr (std::is_same_v<T, event::Shrunk>) {
      events(one.rank, one.message.network);
      shrunk(one.rank, one.message, one.fault);
    }
  };
  std::visit(with, event);
}

void RunRecord::heard(int rank, TimePoint at, const wire::FromRank& message) {
  const auto take = [&]<typename T>(const T& one) {
    if constexpr (std::is_same_v<T, wire::Begin>) {
      if (!one.warmup) iterationBegan(rank, one);
    } else if constexpr (std::is_same_v<T, wire::End>) {
      if (one.warmup) {
        checked(one.checked, one.wrong);
      } else {
        iterationEnded(rank, one);
      }
    } else if constexpr (std::is_same_v<T, wire::Checked>) {
      checked(one.checked, one.wrong);
    } else if constexpr (std::is_same_v<T, wire::Served>) {
      checked(one.checked, one.wrong);
      keepResources(rank, one.resources);
      if (serving_) serving_->served(rank, one);
      if (one.network) events(rank, *one.network);
    } else if constexpr (std::is_same_v<T, wire::Rate> || std::is_same_v<T, wire::Token> ||
                         std::is_same_v<T, wire::Step>) {
      if (serving_) serving_->told(one);
    } else if constexpr (std::is_same_v<T, wire::Events> || std::is_same_v<T, wire::Done>) {
      events(rank, one.network);
    } else if constexpr (std::is_same_v<T, wire::Excluded>) {
      events(rank, one.network);
      excluded(rank, one);
    } else if constexpr (std::is_same_v<T, wire::Error>) {
      if (one.network) events(rank, *one.network);
      error(rank, at, one.message);
    } else {
      static_assert(
          wire::kIsOneOf<T, wire::Joined, wire::Ready, wire::Alive, wire::Shrunk, wire::Gone>,
          "what is to be kept of it?");
    }
  };
  std::visit(take, message);
}

void RunRecord::iterationBegan(int rank, const wire::Begin& message) {
  if (serving_) serving_->begun(message);
  table_.began(rank, message.iteration, message.at);
}

void RunRecord::checked(std::int64_t checked, std::int64_t wrong) {
  run_.checked_elements += checked;
  run_.wrong_elements += wrong;
}

void RunRecord::iterationEnded(int rank, const wire::End& message) {
  checked(message.checked, message.wrong);
  if (serving_) serving_->ended(rank, message);
  keepResources(rank, message.resources);
  exposed_.ended(message);
  calls_.ended(message.iteration, toMilliseconds(message.took), message.checked, message.wrong);
  digests_[{message.iteration, rank}] = message.digest;
  table_.ended(rank, message.iteration, message.at, message.checkpoint);
  if (message.network) events(rank, *message.network);
}

/// Each message has the whole of it, from the process's own t = 0 on; of a process that is killed
/// its last one counts.
void RunRecord::keepResources(int rank, const std::optional<wire::Resources>& told) {
  if (!told) return;
  resources_[rank] = {.rank = rank,
                      .memory_start_bytes = told->memoryStart,
                      .memory_end_bytes = told->memoryEnd,
                      .memory_max_bytes = told->memoryMax,
                      .open_files_start = told->filesStart,
                      .open_files_end = told->filesEnd,
                      .open_files_max = told->filesMax,
                      .cpu_ms = toMilliseconds(told->cpu),
                      .system_calls = told->systemCalls,
                      .sent_bytes = told->sent};
}

void RunRecord::events(int rank, const wire::Network& network) {
  rails_.told(rank, network, t0_);
  plans_.told(rank, network.plans, t0_);
  for (const wire::PortTest& test : network.portTests) {
    portTests_.emplace_back(rank, portTestOf(test, t0_));
  }
  for (const auto& [name, value] : network.counters) counters_[rank][name] = value;
}

/// The counters of processes that count no more.
void RunRecord::keepCounters() {
  for (const auto& [rank, counters] : counters_) {
    for (const auto& [name, value] : counters) {
      std::int64_t& all = run_.counters[name];
      all = name.starts_with("longest_") ? std::max(all, value) : all + value;
    }
  }
  counters_.clear();
}

std::string_view RunRecord::restartWords() const {
  return serving_ ? "started again; what was under way was asked for again"
                  : "restarted from the last checkpoint";
}

void RunRecord::hung(TimePoint when, const HangProof::Hang& hang) {
  run_.status = reports::RunStatus::kHung;
  if (!hang.payload) {
    invalid_ = "the watchdog fired before a hang could be proved: it must be longer";
    return;
  }
  run_.counters["payload_bytes_while_hung"] += static_cast<std::int64_t>(*hang.payload);
  const double watched = toMilliseconds(when - hang.watchedFrom);
  if (*hang.payload > 0) {
    invalid_ = fmt::format(
        "the job was slow and not hung: {} payload bytes were delivered in the {:.0f} ms before "
        "the watchdog, which must be longer",
        *hang.payload, watched);
    return;
  }
  run_.message = fmt::format(
      "hung: not one payload byte was delivered on any rail in the {:.0f} ms before the watchdog; "
      "all ranks were killed and {}",
      watched, restartWords());
}

void RunRecord::crashed(const std::string& message) {
  run_.message = fmt::format("the job died and was {}: {}", restartWords(), message);
}

void RunRecord::cutOff(TimePoint when, TimePoint fault) {
  settleShrinks();
  keepCounters();
  for (const auto& [rank, use] : resources_) run_.resources.push_back(use);
  resources_.clear();
  calls_.cutOff();
  plans_.cutOff();
  if (restarting_) return;  // it died again before it had loaded
  restarting_ = true;
  repairedAt_.reset();
  cuts_.push_back(when);
  reports::Restart& restart = run_.restarts.emplace_back();
  restart.fault_ms = sinceStart(fault);
  restart.hang_ms = toMilliseconds(when - fault);
  countStall(when - fault);   // the ranks cannot tell it any more
  TimePoint hanging = fault;  // between two iterations, all that is lost is the time since then
  // Requests of a server do not wait for each other.
  if (const auto lost = table_.settled().cutOff(serving_ ? std::nullopt : std::optional(fault))) {
    hanging = lost->resumed;
    restart.cut_iteration = lost->index;
    restart.lost_ms = std::max(0.0, toMilliseconds(fault - lost->resumed));
  } else {
    hanging = std::max(hanging, table().lastEnd().value_or(hanging));
  }
  restartTime_ += std::max(Duration::zero(), when - hanging);
  if (serving_) restart.lost_iterations = serving_->underWay();
}

void RunRecord::repaired(TimePoint when) {
  if (!restarting_) return;
  repairedAt_ = when;
  run_.restarts.back().isolate_ms = toMilliseconds(when - cuts_.back());
}

void RunRecord::reloaded(TimePoint when) {
  if (!restarting_ || !repairedAt_) return;
  run_.restarts.back().load_ms = toMilliseconds(when - *repairedAt_);
  restartTime_ += when - cuts_.back();
  restarting_ = false;
}

void RunRecord::shrunk(int rank, const wire::Shrunk& message, std::optional<TimePoint> fault) {
  table_.shrunk(rank, message, fault);
  // What it waited for was given up with the ranks that are gone, and did not come any more.
  countStall(message.noticed - fault.value_or(message.noticed));
}

void RunRecord::settleShrinks() {
  for (ShrinkingTable::Shrink& told : table_.settle()) {
    reports::Shrink& shrink = run_.shrinks.emplace_back();
    if (told.fault) shrink.fault_ms = sinceStart(*told.fault);
    shrink.noticed_ms = sinceStart(told.noticed);
    shrink.resumed_ms = sinceStart(told.resumed);
    shrink.ranks = static_cast<int>(told.ranks.size());
    shrink.iteration = told.iteration;
    for (int rank = 0; rank < scenario_.cluster.ranks(); ++rank) {
      if (!std::ranges::count(told.ranks, rank)) shrink.missing.push_back(rank);
    }
  }
}

void RunRecord::countStall(Duration stall) {
  std::int64_t& longest = run_.counters["longest_receive_stall_us"];
  longest =
      std::max<std::int64_t>(longest, duration_cast<std::chrono::microseconds>(stall).count());
}

void RunRecord::excluded(int rank, const wire::Excluded& message) {
  run_.exclusions.push_back(
      {.rank = rank, .at_ms = sinceStart(message.at), .rails = message.rails});
}

/// Ranks that are killed, or give up, cannot tell how long they waited last: since a fault after
/// which no iteration was done but what was as good as done.
void RunRecord::countLastStall(TimePoint end, std::span<const TimePoint> damages) {
  if (serving_ || damages.empty()) return;  // requests do not wait for each other
  // Between two iterations the job waits since the last one ended.
  const std::optional<IterationTable::Row> open = table().unfinished();
  const std::vector<IterationTable::Row>& done = table().complete();
  if (!open && done.empty()) return;
  const TimePoint waiting = open ? open->resumed : done.back().end;
  const auto fault = std::ranges::find_if(damages, [&](TimePoint struck) {
    return waiting <= struck + HangProof::kDrainTime && struck <= end;
  });
  if (fault != damages.end()) countStall(end - std::max(*fault, waiting));
}

void RunRecord::failed(TimePoint when, reports::RunStatus status, const std::string& message) {
  // "hung" with a restart means that the job went on after it: this one did not.
  const bool again = status == reports::RunStatus::kHung && !run_.restarts.empty();
  run_.status = again ? reports::RunStatus::kFailed : status;
  run_.message = message;
  endedEarly_ = when;
}

/// Lost work: iterations that had begun before a restart and were done again after it; the one that
/// was cut off counts until the fault.
void RunRecord::countLostWork() {
  if (serving_) return;  // has been counted: requests do not end in their order
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    reports::Restart& restart = run_.restarts[i];
    const bool last = i + 1 == cuts_.size();
    // What this attempt did, and where the next one took up: from what that one completed, or at
    // least began.
    std::vector<IterationTable::Row> done;
    std::optional<int> resumed;
    for (const IterationTable::Row& row : table().complete()) {
      if (row.resumed <= cuts_[i]) {
        if (i == 0 || row.resumed > cuts_[i - 1]) done.push_back(row);
      } else if (!resumed && (last || row.resumed <= cuts_[i + 1])) {
        resumed = row.index;
      }
    }
    if (!resumed && !last) resumed = run_.restarts[i + 1].cut_iteration;
    if (resumed) {
      int newest = restart.cut_iteration.value_or(-1);
      for (const IterationTable::Row& row : done) {
        newest = std::max(newest, row.index);
        if (row.index >= *resumed) restart.lost_ms += toMilliseconds(row.end - row.resumed);
      }
      restart.checkpoint_iteration = *resumed - 1;
      restart.lost_iterations = std::max(0, newest - *resumed + 1);
      restart.unscaled_total_ms = kUnscaledWatchdogMs + restart.load_ms + restart.lost_ms;
    }
  }
}

/// All ranks must have had the same; some may have forgotten theirs, or not have come to tell.
void RunRecord::checkPlans() {
  run_.plans = plans_.plans();
  const auto forgotten = run_.counters.find("events_forgotten");
  const bool allTold = !endedEarly_ && (forgotten == run_.counters.end() || forgotten->second == 0);
  const std::string wrong = plans_.disagreement(allTold ? scenario_.cluster.ranks() : 0);
  if (invalid_.empty()) invalid_ = wrong;
}

reports::Iteration RunRecord::entryOf(const IterationTable::Row& row, TimePoint end) const {
  reports::Iteration iteration;
  iteration.index = row.index;
  iteration.start_ms = sinceStart(row.begin);
  iteration.ms = toMilliseconds(end - row.begin);
  iteration.attempts = row.attempts;
  // Ranks that were killed have not told how long computing stood still.
  if (row.attempts == 1) iteration.exposed_ms = exposed_.ofIteration(row.index);
  return iteration;
}

/// What the ranks tell of an iteration is of its last attempt.
void RunRecord::countInterrupted() {
  for (const reports::Iteration& iteration : run_.iterations) {
    if (iteration.attempts > 1) calls_.interrupted(iteration.index, iteration.ms);
  }
  if (!endedEarly_) return;
  if (const auto open = table().unfinished()) {
    run_.unfinished = entryOf(*open, *endedEarly_);
    run_.unfinished->exposed_ms.reset();
    calls_.unfinished(run_.unfinished->index, run_.unfinished->ms);
  }
}

/// A failover that was never over has paused until the job gave up what it was about.
void RunRecord::countPausesWithoutEnd() {
  for (reports::Failover& failover : run_.failovers) {
    if (failover.resumed_ms || !failover.detected_ms) continue;
    std::optional<double> end;
    if (endedEarly_) end = sinceStart(*endedEarly_);
    const auto givenUp = [&](double when_ms) {
      if (when_ms >= *failover.detected_ms) end = std::min(end.value_or(when_ms), when_ms);
    };
    for (const reports::Shrink& shrink : run_.shrinks) givenUp(shrink.noticed_ms);
    for (const TimePoint cut : cuts_) givenUp(sinceStart(cut));
    const double struck_ms = failover.fault_ms.value_or(*failover.detected_ms);
    if (end) failover.pause_ms = std::max(failover.pause_ms, *end - struck_ms);
  }
}

/// What ranks told by when it was, and not by when they told it.
void RunRecord::sortTold() {
  std::ranges::stable_sort(
      portTests_, {}, [](const auto& told) { return std::pair(told.second.at_ms, told.first); });
  for (auto& [rank, test] : portTests_) run_.port_tests.push_back(std::move(test));
  const auto byTime = [](const auto& entry) { return std::pair(entry.at_ms, entry.rank); };
  std::ranges::stable_sort(run_.errors, {}, byTime);
  std::ranges::stable_sort(run_.exclusions, {}, byTime);
}

RecordedRun RunRecord::finish(Observed observed) {
  settleShrinks();
  if (!endedEarly_ && !serving_) table_.settled().finished();
  Duration timed = restartTime_;
  TimePoint last = endedEarly_.value_or(t0_);
  std::vector<IterationTable::Row> done = table().complete();
  if (serving_) std::ranges::stable_sort(done, {}, inOrderOfEnds);  // requests overlap
  for (const IterationTable::Row& row : done) {
    run_.iterations.push_back(entryOf(row, row.end));
    timed += row.end - row.resumed + row.checkpoint;
    run_.checkpoint_ms += toMilliseconds(row.checkpoint);
    last = std::max(last, row.end);
  }
  run_.duration_ms = toMilliseconds(last - t0_);
  countInterrupted();
  countLostWork();
  if (endedEarly_) countLastStall(*endedEarly_, observed.changes.damages());
  rails_.finish(t0_, observed.changes, run_);
  countPausesWithoutEnd();
  keepCounters();
  if (!endedEarly_ && timed > Duration::zero() && table().next() > 0) {
    run_.throughput = reports::Quantity{table().work() / toSeconds(timed), "iterations/s"};
  }
  if (serving_) serving_->finish(run_, t0_, !endedEarly_);
  workload::Digest digest;
  for (const auto& [key, value] : digests_) {
    if (!value.empty()) digest.add(value.data(), value.size());
  }
  if (scenario_.workload.gradient.data == scenario::DataKind::kRandom) run_.digest = digest.hex();
  sortTold();
  run_.rails = std::move(observed.rails);
  run_.rail_series = std::move(observed.railSeries);
  run_.faults = std::move(observed.faults);
  run_.evidence = std::move(observed.evidence);
  checkPlans();
  // Of work that was lost it is not known: none rather than the part that went well.
  const bool lostWork = endedEarly_ || !run_.restarts.empty() || !run_.shrinks.empty();
  if (!lostWork) run_.exposed = exposed_.rows();
  if (observed.goodput.value) {
    constexpr double kMega = 1e6;
    run_.goodput_mbit = static_cast<double>(*observed.goodput.value) / kMega;
  }
  run_.goodput_missing = std::move(observed.goodput.missing);
  for (const auto& [rank, use] : resources_) run_.resources.push_back(use);
  const std::string& problem = invalid_.empty() ? observed.invalidBecause : invalid_;
  if (!problem.empty() && run_.status != reports::RunStatus::kFailed) {
    run_.status = reports::RunStatus::kInvalid;
    run_.message = problem;
  }
  return {.run = std::move(run_),
          .calls = std::move(calls_),
          .qps = serving_ ? serving_->rates() : std::vector<double>()};
}

}  // namespace faultline::run
