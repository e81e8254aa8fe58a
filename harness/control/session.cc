#include "harness/control/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "harness/baseline/strategy_table.h"
#include "harness/cluster/netns_cluster.h"
#include "harness/command/variables.h"
#include "harness/control/fault_control.h"
#include "harness/control/goodput_probe.h"
#include "harness/control/observe.h"
#include "harness/control/rank_group.h"
#include "harness/control/rank_setup.h"
#include "harness/control/sampler.h"
#include "harness/control/timeline.h"
#include "harness/control/watchdog.h"
#include "harness/record/run_events.h"
#include "harness/record/run_record.h"
#include "harness/record/transcript.h"
#include "harness/workload/rank_config.h"
#include "wire/rank.h"

namespace faultline::run {
namespace {

using nlohmann::json;

// How often the timeline is looked at.
constexpr Duration kTick = 1ms;
// For ranks that have finished to leave by themselves.
constexpr Duration kLeaveBudget = 2s;
// When a rank has failed, the words of the others are waited for so long, and, where they know a
// give-up budget, until it is over besides.
constexpr Duration kLastWords = 1s;

/// Whether the error of a rank may only be what the end of another rank led to.
bool isConsequence(const wire::Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kAborted;
}

class Session {
 public:
  Session(const scenario::Scenario& scenario, const PlannedRun& planned,
          const SessionOptions& options, Interrupt& interrupt)
      : scenario_(scenario),
        planned_(planned),
        options_(options),
        interrupt_(interrupt),
        ranks_(scenario.cluster.ranks()),
        strategy_(*baseline::findStrategy(planned.strategy->kind())),
        restarts_(strategy_.restarts),
        shrinks_(strategy_.losesRanks),
        resilient_(strategy_.resilient),
        setup_{scenario, planned, options.seed,
               fmt::format("{}/{}", options.folder.path(), checkpointsFolder(planned.block))},
        record_(scenario, planned),
        watchdog_(scenario) {}
  ~Session();

  Result<SessionResult> execute();

 private:
  enum class Stage { kSettingUp, kRunning, kIsolating, kReloading, kFinished, kFailed };

  Status prepare();
  Status startRanks(bool restart);
  Status loop();
  Status tick();
  std::string_view phase() const;
  Status received(int rank, const json& message);
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
    static_assert(wire::isOneOf<Message, wire::Joined, wire::Begin, wire::Checked, wire::Events,
                                wire::Rate, wire::Token, wire::Served>,
                  "these are recorded, and no more");
  }
  /// As note(event::Heard), without a copy of the message for the record.
  void noteHeard(int rank, const wire::FromRank& message) {
    const TimePoint at = now();
    record_.heard(rank, at, message);
    if (options_.transcript != nullptr) options_.transcript->add(event::Heard{rank, at, message});
  }
  void note(const RunEvent& event) {
    record_.add(event);
    if (options_.transcript != nullptr) options_.transcript->add(event);
  }
  void warmupBegan(int iteration);
  void warmupEnded(int iteration);
  void allReady();
  void tellAll(const wire::ToRank& message) { group_->broadcast(wire::toJson(message)); }
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
  const SessionOptions& options_;
  Interrupt& interrupt_;
  const int ranks_;
  const baseline::StrategySpec& strategy_;
  const bool restarts_;
  const bool shrinks_;
  const bool resilient_;  // its library gives up by a budget
  const RankSetup setup_;
  RunRecord record_;

  std::unique_ptr<cluster::NetnsCluster> cluster_;
  std::optional<Sampler> sampler_;
  std::optional<FaultControl> faults_;
  std::optional<RankGroup> group_;
  auth::JobKey jobKey_;  // of the present attempt

  Stage stage_ = Stage::kSettingUp;
  TimePoint began_{};
  Goodput goodput_;
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
  bool interrupted_ = false;
};

Session::~Session() {
  group_.reset();  // nobody writes any more
  // What is left when that fails lies in the user's own folder.
  if (restarts_) (void)options_.folder.removeFolder(checkpointsFolder(planned_.block));
}

Status Session::prepare() {
  cluster::ClusterSpec spec;
  spec.nodes = scenario_.cluster.nodes;
  spec.ranks_per_node = scenario_.cluster.ranksPerNode;
  spec.rails = scenario_.cluster.rails;
  spec.rail_rate = scenario_.cluster.railRate;
  spec.congestion_control = scenario_.cluster.congestionControl;
  ASSIGN_OR_RETURN(cluster_, cluster::NetnsCluster::create(spec));
  if (scenario_.workload.sweeps()) {
    const auto measure = [this] { return measureGoodput(*cluster_); };
    goodput_ =
        options_.goodput == nullptr ? measure() : options_.goodput->of(planned_.block, measure);
  }
  sampler_.emplace(*cluster_);
  RETURN_IF_ERROR(sampler_->sample(now()));
  if (planned_.arm == reports::Arm::kFaulted) {
    ASSIGN_OR_RETURN(faults_, FaultControl::create(scenario_, *cluster_));
    RETURN_IF_ERROR(faults_->step(now(), *sampler_));  // those that are there before the start
  }
  if (restarts_) {
    // Those of a run that was killed would be taken for this one's.
    RETURN_IF_ERROR(options_.folder.makeFolder(checkpointsFolder(planned_.block)));
  }
  return startRanks(/*restart=*/false);
}

Status Session::startRanks(bool restart) {
  readyRanks_ = doneRanks_ = 0;
  stopping_ = false;
  ended_.assign(ranks_, false);
  failure_.reset();
  jobKey_ = auth::JobKey::random();  // nothing of an earlier attempt means anything to this one
  std::vector<launch::SpawnOptions> processes;
  for (int rank = 0; rank < ranks_; ++rank) {
    launch::SpawnOptions& process = processes.emplace_back();
    process.arguments = {"faultline", "rank"};
    process.namespace_fd = cluster_->nodeNamespace(rank / scenario_.cluster.ranksPerNode);
    process.stderr_fd = options_.logFd;
    process.environment[command::kRankVariable] = std::to_string(rank);
    workload::RankConfig config = rankConfig(setup_, rank, restart);
    config.jobKey = jobKey_;
    config.controlTos = cluster_->controlTos();
    if (scenario_.workload.serves()) config.server = record_.whatIsLeftToServe();
    process.first_message = workload::toJson(config);
  }
  ASSIGN_OR_RETURN(group_, RankGroup::start(processes, "rank"));
  return okStatus();
}

Result<SessionResult> Session::execute() {
  began_ = now();
  note(event::Started{began_});  // until all ranks are ready
  RETURN_IF_ERROR(prepare());
  RETURN_IF_ERROR(loop());
  RETURN_IF_ERROR(sampler_->sample(now()));

  Status ended;
  if (faults_) ended = interrupted_ ? faults_->abandon() : faults_->revertAll();
  if (!group_->allEnded() && stage_ == Stage::kFinished) {
    const TimePoint deadline = now() + kLeaveBudget;
    while (!group_->allEnded() && now() < deadline && !interrupt_.pending()) {
      RETURN_IF_ERROR(
          group_->poll(kTick * 10, interrupt_, [](int, const json&) { return okStatus(); }));
    }
  }
  const Status killed = group_->kill();
  RETURN_IF_ERROR(ended);
  RETURN_IF_ERROR(killed);

  SessionResult result;
  result.interrupted = interrupted_;
  ASSIGN_OR_RETURN(result.cluster, cluster_->describe());
  Observed observed = observedBy(*sampler_, faults_, record_.start());
  observed.goodput = goodput_;
  if (options_.transcript != nullptr) options_.transcript->runEnded(observed);
  result.recorded = record_.finish(std::move(observed));
  if (options_.keepCluster) {
    faults_.reset();  // refers to the cluster
    result.keptCluster = std::move(cluster_);
  }
  return result;
}

Status Session::loop() {
  while (stage_ != Stage::kFinished && stage_ != Stage::kFailed) {
    RETURN_IF_ERROR(group_->poll(kTick, interrupt_, [this](int rank, const json& message) {
      return received(rank, message);
    }));
    if (interrupt_.pending()) {
      interrupted_ = true;
      fail(reports::RunStatus::kFailed, "interrupted");
      return okStatus();
    }
    RETURN_IF_ERROR(tick());
    if (options_.progress) options_.progress(phase(), iteration_);
  }
  return okStatus();
}

std::string_view Session::phase() const {
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

Status Session::tick() {
  const TimePoint time = now();
  RETURN_IF_ERROR(sampler_->keepUp(time));
  if (options_.load != nullptr) options_.load->keepUp(time);
  if (faults_) {
    RETURN_IF_ERROR(faults_->step(time, *sampler_));
    if (restarts_) RETURN_IF_ERROR(followHangs(time));
  }
  stopInTime(time);
  RETURN_IF_ERROR(checkFailure(time));
  RETURN_IF_ERROR(checkWatchdog(time));
  if (stage_ == Stage::kIsolating && !faults_->anyActive()) {
    watchdog_.proof().restarted();
    faults_->restarted();
    note(event::Repaired{now()});
    stage_ = Stage::kReloading;
    RETURN_IF_ERROR(startRanks(/*restart=*/true));
  }
  if (time > began_ + scenario_.limits.deadline && stage_ != Stage::kFinished &&
      stage_ != Stage::kFailed) {
    fail(reports::RunStatus::kHung, fmt::format("not over within the deadline of {}",
                                                formatDuration(scenario_.limits.deadline)));
  }
  return okStatus();
}

Status Session::received(int rank, const json& message) {
  ASSIGN_OR_RETURN(const auto said, wire::fromJson<wire::FromRank>(message));
  const auto* const begin = std::get_if<wire::Begin>(&said);
  const bool first = begin != nullptr && !record_.table().isOpen(begin->iteration);
  // Why ranks are lost is known here, and by nobody else.
  if (!std::holds_alternative<wire::Shrunk>(said)) noteHeard(rank, said);
  if (begin != nullptr) began(*begin, first);
  std::visit([&](const auto& one) { heard(rank, one); }, said);
  return okStatus();
}

/// `first`: of those ranks that begin this iteration.
void Session::began(const wire::Begin& message, bool first) {
  if (message.warmup) return warmupBegan(message.iteration);
  const TimePoint mark = now();
  watchdog_.marked(mark);
  iteration_ = message.iteration;
  if (first && faults_) {
    faults_->iterationBegan(message.iteration, message.at, mark, *sampler_);
  }
}

void Session::heard(int rank, const wire::End& message) {
  if (message.warmup) return warmupEnded(message.iteration);
  watchdog_.marked(now());
  if (faults_) {
    faults_->iterationEnded(rank, message.iteration, message.at, *sampler_,
                            message.last.has_value());
  }
}

void Session::heard(int rank, const wire::Alive& message) {
  watchdog_.alive(rank, now(), message.computes);
}

void Session::heard(int rank, const wire::Step& /*message*/) { watchdog_.stepDone(rank, now()); }

void Session::heard(int /*rank*/, const wire::Ready& /*message*/) {
  if (++readyRanks_ == ranks_) allReady();
}

void Session::heard(int rank, const wire::Done& /*message*/) {
  ended_[rank] = true;
  if (++doneRanks_ == ranks_ - std::ssize(leftOut_)) stage_ = Stage::kFinished;
}

void Session::heard(int rank, const wire::Error& message) {
  gaveUp(rank, message.message, isConsequence(message));
}

void Session::heard(int rank, const wire::Gone& message) {
  if (ended_[rank]) return;
  gaveUp(rank, "ended without a result: " + message.message, /*consequence=*/false);
}

void Session::gaveUp(int rank, const std::string& message, bool consequence) {
  if (faults_) faults_->givenUp(now(), rank);
  ended_[rank] = true;
  rankFailed(rank, message, consequence);
}

void Session::warmupBegan(int iteration) {
  (void)sampler_->sample(now());
  std::vector<std::uint64_t>& bytes = warmupBytes_[iteration];
  if (!bytes.empty()) return;
  for (int node = 0; node < scenario_.cluster.nodes; ++node) {
    bytes.push_back(sampler_->nodeBytes(node));
  }
}

void Session::warmupEnded(int iteration) {
  (void)sampler_->sample(now());
  const auto before = warmupBytes_.find(iteration);
  if (++warmupEnded_[iteration] < ranks_ || !faults_ || before == warmupBytes_.end()) return;
  for (int node = 0; node < scenario_.cluster.nodes; ++node) {
    faults_->warmupIteration(node, sampler_->nodeBytes(node) - before->second[node]);
  }
}

void Session::allReady() {
  const TimePoint time = now();
  if (stage_ == Stage::kSettingUp) {
    note(event::Started{time});
    sampler_->start(time);
    if (faults_) faults_->started(time);
  } else {
    note(event::Reloaded{time});
  }
  stage_ = Stage::kRunning;
  watchdog_.started(time);
  tellAll(wire::Start{});
}

void Session::heard(int rank, const wire::Shrunk& message) {
  std::optional<TimePoint> fault;
  if (faults_) fault = faults_->changes().latestBefore(message.noticed);
  note(event::Shrunk{rank, message, fault});
  for (int other = 0; other < ranks_; ++other) {
    if (!std::ranges::count(message.ranks, other)) leftOut_.insert(other);
  }
  watchdog_.marked(now());
  failure_.reset();  // it has been survived
}

void Session::heard(int rank, const wire::Excluded& /*message*/) {
  ended_[rank] = true;
  leftOut_.insert(rank);
  watchdog_.marked(now());
  if (std::ssize(leftOut_) < ranks_) return;
  fail(reports::RunStatus::kFailed, "every rank had a port that was down: none is left");
}

void Session::rankFailed(int rank, const std::string& message, bool consequence) {
  if (leftOut_.contains(rank)) return;
  // The first cause counts, not the first that is heard of.
  if (failure_ && (consequence || !failure_->consequence)) return;
  const std::string whole =
      message.starts_with("rank ") ? message : fmt::format("rank {}: {}", rank, message);
  if (!failure_) {
    const Duration budget = resilient_ ? scenario_.limits.giveUp : Duration::zero();
    lastWordsUntil_ = now() + budget + kLastWords;
    if (shrinks_) lastWordsUntil_ = TimePoint::max();  // all that are left say whether they go on
  }
  failure_ = Failure{whole, consequence};
}

Status Session::checkFailure(TimePoint time) {
  const bool over = stage_ == Stage::kFinished || stage_ == Stage::kFailed;
  if (!failure_ || over || stage_ == Stage::kIsolating) return okStatus();
  const bool allSpoke = std::ranges::count(ended_, true) == ranks_;
  const bool restarts = restarts_ && !failure_->consequence;  // its time is measured
  if (!allSpoke && !restarts && time < lastWordsUntil_) return okStatus();
  const std::optional<TimePoint> fault = watchdog_.proof().latest();
  if (restarts_ && fault && stage_ != Stage::kSettingUp) {
    // An error instead of a hang: the job is restarted all the same.
    note(event::Crashed{failure_->message});
    return isolate(time, *fault);
  }
  fail(reports::RunStatus::kFailed, failure_->message);
  return okStatus();
}

void Session::stopInTime(TimePoint time) {
  const std::optional<Duration>& limit = scenario_.workload.time;
  if (stopping_ || !limit || stage_ != Stage::kRunning || time < record_.start() + *limit) return;
  stopping_ = true;
  tellAll(wire::Stop{});
}

Status Session::followHangs(TimePoint time) {
  HangProof& proof = watchdog_.proof();
  for (const TimePoint damage : faults_->damages()) proof.damaged(damage);
  if (stage_ != Stage::kRunning || !proof.wantsPayload(time)) return okStatus();
  ASSIGN_OR_RETURN(const std::uint64_t delivered, sampler_->payloadDelivered());
  proof.payload(time, delivered);
  return okStatus();
}

Status Session::checkWatchdog(TimePoint time) {
  if (!restarts_ || stage_ != Stage::kRunning || !watchdog_.proof().latest()) return okStatus();
  ASSIGN_OR_RETURN(const std::uint64_t delivered, sampler_->payloadDelivered());
  const Duration patience = planned_.strategy->options.get<Duration>("watchdog");
  const auto hang = watchdog_.check(time, patience, delivered, record_.table().open());
  if (!hang) return okStatus();
  note(event::Hung{time, *hang});
  return isolate(time, hang->fault);
}

Status Session::isolate(TimePoint time, TimePoint fault) {
  RETURN_IF_ERROR(group_->kill());
  note(event::CutOff{time, fault});
  stage_ = Stage::kIsolating;
  // A fault that lasts until the end of the run ends with the repair of the node.
  return faults_->endThoseWithoutDuration();
}

void Session::fail(reports::RunStatus status, const std::string& message) {
  const TimePoint time = now();
  if (faults_) faults_->givenUp(time, ended_);
  note(event::Failed{time, status, message});
  stage_ = Stage::kFailed;
}

}  // namespace

Result<SessionResult> runSession(const scenario::Scenario& scenario, const PlannedRun& planned,
                                 const SessionOptions& options, Interrupt& interrupt) {
  Session session(scenario, planned, options, interrupt);
  return session.execute();
}

}  // namespace faultline::run
