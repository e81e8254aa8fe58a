#include "harness/control/rank_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "harness/baseline/strategy_table.h"
#include "harness/command/variables.h"
#include "harness/control/rank_setup.h"
#include "harness/control/timeline.h"
#include "harness/control/watchdog.h"
#include "harness/record/run_events.h"
#include "harness/record/run_record.h"
#include "harness/record/transcript.h"
#include "harness/site/kind.h"
#include "harness/workload/rank_config.h"
#include "wire/rank.h"

namespace faultline::run {
namespace {

using nlohmann::json;

// For ranks that have finished to leave by themselves.
constexpr Duration kLeaveBudget = 2s;
constexpr Duration kLeaveTick = 10ms;
// When a rank has failed, the words of the others are waited for so long, and, where they know a
// give-up budget, until it is over besides.
constexpr Duration kLastWords = 1s;

/// Whether the error of a rank may only be what the end of another rank led to.
bool isConsequence(const wire::Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kAborted;
}

class RankJob final : public Job {
 public:
  explicit RankJob(RunParts& run)
      : Job(run),
        scenario_(run.scenario),
        planned_(run.planned),
        ranks_(run.scenario.cluster.ranks()),
        strategy_(*baseline::findStrategy(planned_.strategy->kind())),
        counts_(countsOf(scenario_, planned_.block)),
        record_(scenario_, planned_),
        watchdog_(scenario_) {}
  ~RankJob() override;

  Status prepare() override;
  Status begin() override;
  Status received(int rank, const json& message) override;
  Status tick(TimePoint time) override;
  bool isOver() const override { return stage_ == Stage::kFinished || stage_ == Stage::kFailed; }
  void interrupted() override {
    if (stage_ == Stage::kFailed) return;  // the first reason counts
    fail(reports::RunStatus::kFailed, "interrupted");
  }
  void lost(const std::string& what) override;
  Status leave() override;
  RecordedRun finish(Observed observed) override { return record_.finish(std::move(observed)); }
  std::string_view phase() const override;
  int iteration() const override { return iteration_; }
  TimePoint start() const override { return record_.start(); }

 protected:
  void record(const RunEvent& event) override { record_.add(event); }

 private:
  enum class Stage { kSettingUp, kRunning, kIsolating, kReloading, kFinished, kFailed };

  Status startRanks(bool restart);
  // What a message means besides what is recorded of it.
  void began(const wire::Begin& message, bool first);
  void heard(int rank, const wire::End& message);
  void heard(int rank, const wire::Alive& message);
  void heard(int rank, const wire::Step& message);
  void heard(int rank, const wire::Ready& message);
  void heard(int rank, const wire::Done& message);
  void heard(int rank, const wire::Excluded& message);
  void heard(int rank, const wire::Shrunk& message);
  void heard(int rank, const wire::Error& message);
  void heard(int rank, const wire::Gone& message);
  template <typename Message>
  void heard(int /*rank*/, const Message& /*message*/) {
    static_assert(wire::kIsOneOf<Message, wire::Joined, wire::Begin, wire::Checked, wire::Events,
                                 wire::Rate, wire::Token, wire::Served>,
                  "these are recorded, and no more");
  }
  /// As note(event::Heard), without a copy of the message for the record.
  void noteHeard(int rank, const wire::FromRank& message) {
    const TimePoint at = now();
    record_.heard(rank, at, message);
    if (run_.options.transcript != nullptr) {
      run_.options.transcript->add(event::Heard{rank, at, message});
    }
  }
  void warmupBegan(int iteration);
  void warmupEnded(int iteration);
  void allReady();
  void tellAll(const wire::ToRank& message) { run_.processes->broadcast(wire::toJson(message)); }
  void gaveUp(int rank, const std::string& message, bool consequence);
  void rankFailed(int rank, const std::string& message, bool consequence);
  void stopInTime(TimePoint now);
  Status followHangs(TimePoint now);
  Status checkFailure(TimePoint now);
  Status checkWatchdog(TimePoint now);
  Status isolate(TimePoint now, TimePoint fault);
  void fail(reports::RunStatus status, const std::string& message);

  const scenario::Scenario& scenario_;
  const PlannedRun& planned_;
  const int ranks_;
  const baseline::StrategySpec& strategy_;
  const wire::Counts counts_;
  RunRecord record_;
  auth::JobKey jobKey_;  // of the present attempt

  Stage stage_ = Stage::kSettingUp;
  const TimePoint began_ = now();
  int iteration_ = -1;  // that began last
  int readyRanks_ = 0;
  int doneRanks_ = 0;
  bool stopping_ = false;                                  // the ranks were told to end early
  std::vector<bool> ended_;                                // by rank: has said how it ended
  std::set<int> leftOut_;                                  // ranks that the others go on without
  std::map<int, int> warmupEnded_;                         // by warm-up iteration
  std::map<int, std::vector<std::uint64_t>> warmupBytes_;  // at its begin, by node
  Watchdog watchdog_;
  struct Failure {
    std::string message;
    bool consequence;  // there may be a better explanation
  };
  TimePoint lastWordsUntil_{};
  std::optional<Failure> failure_;  // of a rank, not acted upon yet
};

RankJob::~RankJob() {
  run_.processes.reset();  // nobody writes any more
  // What is left when that fails lies in the user's own folder.
  if (strategy_.restarts) (void)run_.options.folder.removeFolder(checkpointsFolder(planned_.block));
}

Status RankJob::prepare() {
  if (!strategy_.restarts || !scenario_.cluster.kind->sharesFolder) return okStatus();
  // Those of a run that was killed would be taken for this one's.
  return run_.options.folder.makeFolder(checkpointsFolder(planned_.block));
}

Status RankJob::begin() { return startRanks(/*restart=*/false); }

Status RankJob::startRanks(bool restart) {
  readyRanks_ = doneRanks_ = 0;
  stopping_ = false;
  ended_.assign(ranks_, false);
  failure_.reset();
  jobKey_ = auth::JobKey::random();  // nothing of an earlier attempt means anything to this one
  const std::string shared = run_.cluster->sharedFolder();
  const RankSetup setup{scenario_, planned_, run_.cluster->network(), run_.options.seed,
                        shared.empty() ? fmt::format("{}/{}", run_.options.folder.path(),
                                                     checkpointsFolder(planned_.block))
                                       : shared};
  std::vector<site::RankProcess> processes;
  for (int rank = 0; rank < ranks_; ++rank) {
    site::RankProcess& process = processes.emplace_back();
    process.node = rank / scenario_.cluster.ranksPerNode;
    process.environment[command::kRankVariable] = std::to_string(rank);
    workload::RankConfig config = rankConfig(setup, rank, restart);
    config.jobKey = jobKey_;
    config.controlTos = run_.cluster->controlTos();
    config.server = record_.whatIsLeftToServe();
    process.config = workload::toJson(config);
  }
  ASSIGN_OR_RETURN(run_.processes, run_.cluster->startRanks(processes, run_.options.logFd));
  return okStatus();
}

void RankJob::lost(const std::string& what) {
  if (stage_ == Stage::kFinished) return;  // all has been said
  const bool started = stage_ != Stage::kSettingUp;
  fail(reports::RunStatus::kFailed,
       started ? fmt::format("{}, {:.2f} s after the start", what, toSeconds(now() - start()))
               : fmt::format("{}, while the job was set up", what));
}

Status RankJob::leave() {
  const TimePoint deadline = now() + kLeaveBudget;
  while (stage_ == Stage::kFinished && !run_.processes->allEnded() && now() < deadline &&
         !run_.interrupt.pending()) {
    RETURN_IF_ERROR(run_.processes->poll(kLeaveTick, run_.interrupt.fd(),
                                         [](int, const json&) { return okStatus(); }));
  }
  return okStatus();
}

std::string_view RankJob::phase() const {
  switch (stage_) {
    case Stage::kSettingUp:
      return "setting up";
    case Stage::kRunning:
      return "running";
    case Stage::kIsolating:
      return "waiting for the repair";
    case Stage::kReloading:
      return "restarting";
    case Stage::kFinished:
    case Stage::kFailed:
      break;
  }
  return "ending";
}

Status RankJob::tick(TimePoint time) {
  if (run_.faults) {
    RETURN_IF_ERROR(run_.faults->step(time, *run_.sampler));
    if (strategy_.restarts) RETURN_IF_ERROR(followHangs(time));
  }
  stopInTime(time);
  RETURN_IF_ERROR(checkFailure(time));
  RETURN_IF_ERROR(checkWatchdog(time));
  if (stage_ == Stage::kIsolating && !run_.faults->anyActive()) {
    watchdog_.proof().restarted();
    run_.faults->restarted();
    note(event::Repaired{now()});
    stage_ = Stage::kReloading;
    RETURN_IF_ERROR(startRanks(/*restart=*/true));
  }
  if (time > began_ + scenario_.limits.deadline && !isOver()) {
    fail(reports::RunStatus::kHung, fmt::format("not over within the deadline of {}",
                                                formatDuration(scenario_.limits.deadline)));
  }
  return okStatus();
}

Status RankJob::received(int rank, const json& message) {
  ASSIGN_OR_RETURN(const auto said, wire::fromJson<wire::FromRank>(message));
  RETURN_IF_ERROR(wire::checkIndexes(said, counts_));
  const auto* const begin = std::get_if<wire::Begin>(&said);
  const bool first = begin != nullptr && !record_.table().isOpen(begin->iteration);
  // Why ranks are lost is known here, and by nobody else.
  if (!std::holds_alternative<wire::Shrunk>(said)) noteHeard(rank, said);
  if (begin != nullptr) began(*begin, first);
  std::visit([&](const auto& one) { heard(rank, one); }, said);
  return okStatus();
}

/// `first`: of those ranks that begin this iteration.
void RankJob::began(const wire::Begin& message, bool first) {
  if (message.warmup) return warmupBegan(message.iteration);
  const TimePoint mark = now();
  watchdog_.marked(mark);
  iteration_ = message.iteration;
  if (first && run_.faults) {
    run_.faults->iterationBegan(message.iteration, message.at, mark, *run_.sampler);
  }
}

void RankJob::heard(int rank, const wire::End& message) {
  if (message.warmup) return warmupEnded(message.iteration);
  watchdog_.marked(now());
  if (run_.faults) {
    run_.faults->iterationEnded(rank, message.iteration, message.at, *run_.sampler,
                                message.last.has_value());
  }
}

void RankJob::heard(int rank, const wire::Alive& message) {
  watchdog_.alive(rank, now(), message.computes);
}

void RankJob::heard(int rank, const wire::Step& /*message*/) { watchdog_.stepDone(rank, now()); }

void RankJob::heard(int /*rank*/, const wire::Ready& /*message*/) {
  if (++readyRanks_ == ranks_) allReady();
}

void RankJob::heard(int rank, const wire::Done& /*message*/) {
  ended_[rank] = true;
  if (++doneRanks_ == ranks_ - std::ssize(leftOut_)) stage_ = Stage::kFinished;
}

void RankJob::heard(int rank, const wire::Error& message) {
  gaveUp(rank, message.message, isConsequence(message));
}

void RankJob::heard(int rank, const wire::Gone& message) {
  if (ended_[rank]) return;
  gaveUp(rank, "ended without a result: " + message.message, /*consequence=*/false);
}

void RankJob::gaveUp(int rank, const std::string& message, bool consequence) {
  if (run_.faults) run_.faults->givenUp(now(), rank);
  ended_[rank] = true;
  rankFailed(rank, message, consequence);
}

void RankJob::warmupBegan(int iteration) {
  (void)run_.sampler->sample(now());
  std::vector<std::uint64_t>& bytes = warmupBytes_[iteration];
  if (!bytes.empty()) return;
  for (int node = 0; node < scenario_.cluster.nodes; ++node) {
    bytes.push_back(run_.sampler->nodeBytes(node));
  }
}

void RankJob::warmupEnded(int iteration) {
  (void)run_.sampler->sample(now());
  const auto before = warmupBytes_.find(iteration);
  if (++warmupEnded_[iteration] < ranks_ || !run_.faults || before == warmupBytes_.end()) return;
  for (int node = 0; node < scenario_.cluster.nodes; ++node) {
    run_.faults->warmupIteration(node, run_.sampler->nodeBytes(node) - before->second[node]);
  }
}

void RankJob::allReady() {
  const TimePoint time = now();
  if (stage_ == Stage::kSettingUp) {
    note(event::Started{time});
    run_.sampler->start(time);
    if (run_.faults) run_.faults->started(time);
  } else {
    note(event::Reloaded{time});
  }
  stage_ = Stage::kRunning;
  watchdog_.started(time);
  tellAll(wire::Start{});
}

void RankJob::heard(int rank, const wire::Shrunk& message) {
  std::optional<TimePoint> fault;
  if (run_.faults) fault = run_.faults->changes().latestBefore(message.noticed);
  note(event::Shrunk{rank, message, fault});
  for (int other = 0; other < ranks_; ++other) {
    if (!std::ranges::count(message.ranks, other)) leftOut_.insert(other);
  }
  watchdog_.marked(now());
  failure_.reset();  // it has been survived
}

void RankJob::heard(int rank, const wire::Excluded& /*message*/) {
  ended_[rank] = true;
  leftOut_.insert(rank);
  watchdog_.marked(now());
  if (std::ssize(leftOut_) < ranks_) return;
  fail(reports::RunStatus::kFailed, "every rank had a port that was down: none is left");
}

void RankJob::rankFailed(int rank, const std::string& message, bool consequence) {
  if (leftOut_.contains(rank)) return;
  // The first cause counts, not the first that is heard of.
  if (failure_ && (consequence || !failure_->consequence)) return;
  const std::string whole =
      message.starts_with("rank ") ? message : fmt::format("rank {}: {}", rank, message);
  if (!failure_) {
    const Duration budget = strategy_.resilient ? scenario_.limits.giveUp : Duration::zero();
    lastWordsUntil_ = now() + budget + kLastWords;
    if (strategy_.losesRanks)
      lastWordsUntil_ = TimePoint::max();  // all that are left say whether they go on
  }
  failure_ = Failure{whole, consequence};
}

Status RankJob::checkFailure(TimePoint time) {
  if (!failure_ || isOver() || stage_ == Stage::kIsolating) return okStatus();
  const bool allSpoke = std::ranges::count(ended_, true) == ranks_;
  const bool restarts = strategy_.restarts && !failure_->consequence;  // its time is measured
  if (!allSpoke && !restarts && time < lastWordsUntil_) return okStatus();
  const std::optional<TimePoint> fault = watchdog_.proof().latest();
  if (strategy_.restarts && fault && stage_ != Stage::kSettingUp) {
    // An error instead of a hang: the job is restarted all the same.
    note(event::Crashed{failure_->message});
    return isolate(time, *fault);
  }
  fail(reports::RunStatus::kFailed, failure_->message);
  return okStatus();
}

void RankJob::stopInTime(TimePoint time) {
  const std::optional<Duration>& limit = scenario_.workload.time;
  if (stopping_ || !limit || stage_ != Stage::kRunning || time < record_.start() + *limit) return;
  stopping_ = true;
  tellAll(wire::Stop{});
}

Status RankJob::followHangs(TimePoint time) {
  HangProof& proof = watchdog_.proof();
  for (const TimePoint damage : run_.faults->damages()) proof.damaged(damage);
  if (stage_ != Stage::kRunning || !proof.wantsPayload(time)) return okStatus();
  ASSIGN_OR_RETURN(const std::uint64_t delivered, run_.sampler->payloadDelivered());
  proof.payload(time, delivered);
  return okStatus();
}

Status RankJob::checkWatchdog(TimePoint time) {
  if (!strategy_.restarts || stage_ != Stage::kRunning || !watchdog_.proof().latest())
    return okStatus();
  ASSIGN_OR_RETURN(const std::uint64_t delivered, run_.sampler->payloadDelivered());
  const Duration patience = planned_.strategy->options.get<Duration>("watchdog");
  const auto hang = watchdog_.check(time, patience, delivered, record_.table().open());
  if (!hang) return okStatus();
  note(event::Hung{time, *hang});
  return isolate(time, hang->fault);
}

Status RankJob::isolate(TimePoint time, TimePoint fault) {
  RETURN_IF_ERROR(run_.processes->kill());
  note(event::CutOff{time, fault});
  stage_ = Stage::kIsolating;
  // A fault that lasts until the end of the run ends with the repair of the node.
  return run_.faults->endThoseWithoutDuration();
}

void RankJob::fail(reports::RunStatus status, const std::string& message) {
  const TimePoint time = now();
  if (run_.faults) run_.faults->givenUp(time, ended_);
  note(event::Failed{time, status, message});
  stage_ = Stage::kFailed;
}

}  // namespace

std::unique_ptr<Job> makeRankJob(RunParts& run) { return std::make_unique<RankJob>(run); }

}  // namespace faultline::run
