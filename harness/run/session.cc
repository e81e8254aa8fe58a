#include "harness/run/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/random.h"
#include "harness/baseline/strategy_table.h"
#include "harness/cluster/netns_cluster.h"
#include "harness/run/fault_control.h"
#include "harness/run/message.h"
#include "harness/run/rank_group.h"
#include "harness/run/run_record.h"
#include "harness/run/sampler.h"
#include "harness/run/timeline.h"
#include "harness/workload/rank_config.h"

namespace faultline::run {
namespace {

using nlohmann::json;

// How often counters are read and the timeline is looked at.
constexpr Duration kTick = 1ms;
// For ranks that have finished to leave by themselves.
constexpr Duration kLeaveBudget = 2s;
// What was in flight when the fault came has drained by then; a hang is proved from here on.
constexpr Duration kDrainTime = 100ms;
constexpr std::uint16_t kRendezvousPort = 29500;

class Session {
 public:
  Session(const scenario::Scenario& scenario, const PlannedRun& planned,
          const SessionOptions& options, Interrupt& interrupt)
      : scenario_(scenario),
        planned_(planned),
        options_(options),
        interrupt_(interrupt),
        ranks_(scenario.cluster.ranks()),
        failStop_(planned.strategy->name == baseline::kFailStop),
        checkpoints_(fmt::format("{}/checkpoints-{}", options.directory, planned.block)),
        record_(scenario, planned) {}

  Result<SessionResult> execute();

 private:
  enum class Stage { kSettingUp, kRunning, kIsolating, kReloading, kFinished, kFailed };

  Status prepare();
  Status startRanks(bool restart);
  json configOf(int rank, bool restart) const;
  Status loop();
  Status tick();
  void received(int rank, const json& message);
  void warmupMark(const json& message, bool end);
  void allReady();
  void rankFailed(int rank, const std::string& message);
  Status checkWatchdog(TimePoint now);
  void giveUpAttempt(TimePoint now);
  Status isolate(TimePoint now);
  void fail(reports::RunStatus status, const std::string& message);
  std::string checkpointPath(int rank) const;

  const scenario::Scenario& scenario_;
  const PlannedRun& planned_;
  const SessionOptions& options_;
  Interrupt& interrupt_;
  const int ranks_;
  const bool failStop_;
  const std::string checkpoints_;  // folder, of this run alone
  RunRecord record_;

  std::unique_ptr<cluster::NetnsCluster> cluster_;
  std::optional<Sampler> sampler_;
  std::optional<FaultControl> faults_;
  std::optional<RankGroup> group_;

  Stage stage_ = Stage::kSettingUp;
  TimePoint began_{};
  TimePoint spawned_{};
  int readyRanks_ = 0;
  int doneRanks_ = 0;
  std::vector<bool> done_;
  std::map<int, int> warmupEnded_;                         // by warm-up iteration
  std::map<int, std::vector<std::uint64_t>> warmupBytes_;  // at its begin, by node
  std::optional<std::uint64_t> drainedPayload_;            // delivered, kDrainTime after the fault
  bool cutOffDue_ = false;                                 // the attempt is over: isolate
  bool interrupted_ = false;
};

Status Session::prepare() {
  cluster::ClusterSpec spec;
  spec.nodes = scenario_.cluster.nodes;
  spec.ranks_per_node = scenario_.cluster.ranksPerNode;
  spec.rails = scenario_.cluster.rails;
  spec.rail_rate = scenario_.cluster.railRate;
  ASSIGN_OR_RETURN(cluster_, cluster::NetnsCluster::create(spec));
  sampler_.emplace(*cluster_);
  RETURN_IF_ERROR(sampler_->sample(now()));
  if (planned_.arm == reports::Arm::kFaulted) {
    ASSIGN_OR_RETURN(faults_, FaultControl::create(scenario_, *cluster_));
  }
  if (failStop_) {
    std::error_code error;
    std::filesystem::create_directories(checkpoints_, error);
    if (error) {
      return errorf(Code::kIo, "create the folder for checkpoints {}: {}", checkpoints_,
                    error.message());
    }
  }
  return startRanks(/*restart=*/false);
}

std::string Session::checkpointPath(int rank) const {
  return fmt::format("{}/rank{}", checkpoints_, rank);
}

json Session::configOf(int rank, bool restart) const {
  workload::RankConfig config;
  config.rank = rank;
  config.size = ranks_;
  config.jobKey = Random::mix(
      options_.seed ^ Random::mix(static_cast<std::uint64_t>(spawned_.time_since_epoch().count())));
  const int node = rank / scenario_.cluster.ranksPerNode;
  for (int rail = 0; rail < scenario_.cluster.rails; ++rail) {
    config.nics.push_back({cluster::railName(rail), cluster::railAddress(node, rail)});
  }
  config.managementAddress = cluster::managementAddress(node);
  config.rendezvousAddress = cluster::managementAddress(0);
  config.rendezvousPort = kRendezvousPort;
  config.controlTos = cluster_->controlTos();
  const std::string_view strategy = planned_.strategy->name;
  config.resilient = strategy != baseline::kFaultFree && !failStop_;
  config.giveUp = scenario_.limits.giveUp;
  config.setupTimeout = scenario_.limits.deadline;
  config.workload = scenario_.workload;
  if (restart) config.workload.warmupIterations = 0;
  config.seed = options_.seed;
  const Parameters& chosen = planned_.strategy->options;
  config.corruptOneElement =
      chosen.has(baseline::kCorruptOneElement) && chosen.get<bool>(baseline::kCorruptOneElement);
  if (failStop_) {
    config.checkpointEvery = static_cast<int>(chosen.get<std::int64_t>("checkpoint_every"));
    config.checkpointPath = checkpointPath(rank);
  }
  return workload::toJson(config);
}

Status Session::startRanks(bool restart) {
  readyRanks_ = doneRanks_ = 0;
  done_.assign(ranks_, false);
  spawned_ = now();
  std::vector<json> configs;
  for (int rank = 0; rank < ranks_; ++rank) configs.push_back(configOf(rank, restart));
  ASSIGN_OR_RETURN(
      group_, RankGroup::start(*cluster_, scenario_.cluster.ranksPerNode, configs, options_.logFd));
  return okStatus();
}

Result<SessionResult> Session::execute() {
  began_ = now();
  RETURN_IF_ERROR(prepare());
  RETURN_IF_ERROR(loop());

  Status ended;
  if (faults_) ended = faults_->revertAll();
  if (!group_->allEnded() && stage_ == Stage::kFinished) {
    const TimePoint deadline = now() + kLeaveBudget;
    while (!group_->allEnded() && now() < deadline && !interrupt_.pending()) {
      RETURN_IF_ERROR(group_->poll(kTick * 10, interrupt_, [](int, const json&) {}));
    }
  }
  const Status killed = group_->kill();
  RETURN_IF_ERROR(ended);
  RETURN_IF_ERROR(killed);

  SessionResult result;
  result.interrupted = interrupted_;
  ASSIGN_OR_RETURN(result.cluster, cluster_->describe());
  result.run = record_.finish(faults_ ? &*faults_ : nullptr, *sampler_);
  if (options_.keepCluster) {
    faults_.reset();  // refers to the cluster
    result.keptCluster = std::move(cluster_);
  }
  std::error_code ignored;
  if (failStop_) std::filesystem::remove_all(checkpoints_, ignored);
  return result;
}

Status Session::loop() {
  while (stage_ != Stage::kFinished && stage_ != Stage::kFailed) {
    RETURN_IF_ERROR(group_->poll(
        kTick, interrupt_, [this](int rank, const json& message) { received(rank, message); }));
    if (interrupt_.pending()) {
      interrupted_ = true;
      fail(reports::RunStatus::kFailed, "interrupted");
      return okStatus();
    }
    RETURN_IF_ERROR(tick());
  }
  return okStatus();
}

Status Session::tick() {
  const TimePoint time = now();
  RETURN_IF_ERROR(sampler_->sample(time));
  if (faults_) {
    RETURN_IF_ERROR(faults_->step(time, *sampler_));
    const std::optional<TimePoint> fault = faults_->firstFault();
    if (failStop_ && fault && !drainedPayload_ && time >= *fault + kDrainTime) {
      ASSIGN_OR_RETURN(drainedPayload_, sampler_->payloadDelivered());
    }
  }
  if (cutOffDue_) RETURN_IF_ERROR(isolate(time));
  RETURN_IF_ERROR(checkWatchdog(time));
  if (stage_ == Stage::kIsolating && !faults_->anyActive()) {
    record_.repaired(now());
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

void Session::received(int rank, const json& message) {
  const std::string type = field(message, "type", std::string());
  const bool warmup = field(message, "warmup", false);
  if (type == "begin" && warmup) {
    warmupMark(message, /*end=*/false);
  } else if (type == "end" && warmup) {
    record_.checked(message);
    warmupMark(message, /*end=*/true);
  } else if (type == "begin") {
    const int iteration = field(message, "iteration", 0);
    if (record_.iterationBegan(message) && faults_) {
      (void)sampler_->sample(now());
      faults_->iterationBegan(iteration, *sampler_);
    }
  } else if (type == "end") {
    record_.iterationEnded(rank, message);
    if (faults_) {
      faults_->iterationEnded(rank, field(message, "iteration", 0), momentOf(message, "at"));
    }
  } else if (type == "ready") {
    if (++readyRanks_ == ranks_) allReady();
  } else if (type == "done") {
    record_.rankDone(rank, message, faults_ ? &*faults_ : nullptr);
    done_[rank] = true;
    if (++doneRanks_ == ranks_) stage_ = Stage::kFinished;
  } else if (type == "error") {
    record_.rankDone(rank, message, faults_ ? &*faults_ : nullptr);
    rankFailed(rank, field(message, "message", std::string("an error without words")));
  } else if (type == "gone" && !done_[rank]) {
    rankFailed(rank, "ended without a result: " + field(message, "message", std::string()));
  }
}

void Session::warmupMark(const json& message, bool end) {
  const int iteration = field(message, "iteration", 0);
  (void)sampler_->sample(now());
  if (!end) {
    std::vector<std::uint64_t>& bytes = warmupBytes_[iteration];
    if (!bytes.empty()) return;
    for (int node = 0; node < scenario_.cluster.nodes; ++node)
      bytes.push_back(sampler_->nodeBytes(node));
    return;
  }
  if (++warmupEnded_[iteration] < ranks_ || !faults_) return;
  for (int node = 0; node < scenario_.cluster.nodes; ++node) {
    faults_->warmupIteration(node, sampler_->nodeBytes(node) - warmupBytes_[iteration][node]);
  }
}

void Session::allReady() {
  const TimePoint time = now();
  if (stage_ == Stage::kSettingUp) {
    record_.started(time);
    sampler_->start(time);
    if (faults_) faults_->started(time);
  } else {
    record_.reloaded(time);
  }
  stage_ = Stage::kRunning;
  group_->broadcast({{"type", "start"}});
}

void Session::rankFailed(int rank, const std::string& message) {
  if (stage_ == Stage::kFinished || stage_ == Stage::kFailed || cutOffDue_ ||
      stage_ == Stage::kIsolating) {
    return;
  }
  const bool afterFault = faults_ && faults_->firstFault();
  if (failStop_ && afterFault && stage_ == Stage::kRunning) {
    cutOffDue_ = true;  // an error instead of a hang: the job is restarted all the same
    record_.crashed(now(), fmt::format("rank {}: {}", rank, message));
    return;
  }
  fail(reports::RunStatus::kFailed,
       message.starts_with("rank ") ? message : fmt::format("rank {}: {}", rank, message));
}

Status Session::checkWatchdog(TimePoint time) {
  if (!failStop_ || stage_ != Stage::kRunning) return okStatus();
  const std::optional<IterationTable::Row> open = record_.table().open();
  const Duration watchdog = planned_.strategy->options.get<Duration>("watchdog");
  if (!open || time < open->begin + watchdog) return okStatus();
  if (!faults_ || !faults_->firstFault()) return okStatus();  // slow, but nothing was broken
  std::optional<std::uint64_t> whileHung;
  if (drainedPayload_) {
    ASSIGN_OR_RETURN(const std::uint64_t delivered, sampler_->payloadDelivered());
    whileHung = delivered - *drainedPayload_;
  }
  record_.hung(time, *faults_->firstFault(), whileHung);
  return isolate(time);
}

Status Session::isolate(TimePoint) {
  cutOffDue_ = false;
  RETURN_IF_ERROR(group_->kill());
  record_.cutOff(*faults_->firstFault());
  stage_ = Stage::kIsolating;
  // A fault that lasts until the end of the run ends with the repair of the node.
  return faults_->endThoseWithoutDuration();
}

void Session::fail(reports::RunStatus status, const std::string& message) {
  record_.failed(status, message);
  stage_ = Stage::kFailed;
}

}  // namespace

Result<SessionResult> runSession(const scenario::Scenario& scenario, const PlannedRun& planned,
                                 const SessionOptions& options, Interrupt& interrupt) {
  Session session(scenario, planned, options, interrupt);
  return session.execute();
}

}  // namespace faultline::run
