#include "harness/workload/rank_main.h"

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "harness/launch/lifeline.h"
#include "harness/launch/message_channel.h"
#include "harness/launch/process.h"
#include "harness/model/training_program.h"
#include "harness/workload/checkpoint_history.h"
#include "harness/workload/communicator_options.h"
#include "harness/workload/digest.h"
#include "harness/workload/job.h"
#include "harness/workload/job_kind.h"
#include "harness/workload/long_wait.h"
#include "harness/workload/rank_config.h"
#include "harness/workload/rank_events.h"
#include "harness/workload/resource_watch.h"
#include "harness/workload/server.h"
#include "resilient_ccl/fabric/port_sight.h"

namespace faultline::workload {
namespace {

using nlohmann::json;

// The configuration is written before the process runs.
constexpr Duration kConfigBudget = 10s;
// How long one wait for the controller lasts; it is repeated until the controller is gone.
constexpr Duration kControllerWait = 60s;
// An iteration that takes longer tells what has happened, as often.
constexpr Duration kLongWait = 1s;
// Warm-up iterations have data of their own.
constexpr std::uint64_t kWarmupData = std::uint64_t{1} << 63;

/// By the name of the phase; those for which nothing stood still are left out.
std::map<std::string, Duration> exposedOf(const IterationTime& time) {
  std::map<std::string, Duration> phases;
  for (std::size_t phase = 0; phase < time.exposed.size(); ++phase) {
    if (time.exposed[phase] == Duration::zero()) continue;
    phases[std::string(model::kPhaseNames[phase])] = time.exposed[phase];
  }
  return phases;
}

/// One rank from joining to its last message.
class RankRun {
 public:
  RankRun(const RankConfig& config, launch::MessageChannel& controller)
      : config_(config),
        controller_(controller),
        kind_(jobKind(*config.workload.kind)),
        job_(kind_.make == nullptr ? nullptr : kind_.make(config)),
        server_(kind_.serve == nullptr ? nullptr : kind_.serve(config)),
        checkpoints_(config.checkpointPath, static_cast<std::uint32_t>(config.rank)),
        ranks_(config.size) {
    std::iota(ranks_.begin(), ranks_.end(), 0);
    for (const RankConfig::Nic& nic : config.nics) ports_.emplace_back(nic.device);
  }

  /// Everything up to and with wire::Done.
  Status run();
  /// Tells the controller and the other ranks.
  void reportError(const Status& why);

 private:
  Status join();
  Server::Hooks serverHooks();
  Status send(const wire::FromRank& message) { return controller_.send(wire::toJson(message)); }
  template <typename Message>
  Status tellAll(Message message);
  wire::Network takeNews(bool last);
  wire::Network takeLastNews();
  Status warmUp();
  Status train();
  void tellEvents();
  DataKey keyOf(std::uint64_t number, bool warmup) const;
  void prepare(std::uint64_t number, bool warmup);
  Status runIteration(std::uint64_t number, bool warmup);
  Status settle(std::uint64_t number, bool warmup);
  Result<Duration> saveIfDue(std::uint64_t nextIteration);
  Result<bool> trainOnce(std::uint64_t iteration);
  Result<std::uint64_t> shrink(std::uint64_t iteration);
  bool mayShrink() const;
  std::vector<int> lostRails() const;
  Status leave(std::vector<int> lostRails);
  Status finish();

  Result<std::optional<Checkpoint>> loadNewest() const;
  Status resumeFrom(std::optional<Checkpoint> newest);
  Result<std::int64_t> agree(std::int64_t value, reduction::ReduceOp op);
  Result<bool> stopAgreed();
  Status awaitStart();
  Status readController();
  Status obey(const json& message);

  const RankConfig& config_;
  launch::MessageChannel& controller_;
  const JobKind& kind_;
  std::unique_ptr<Job> job_;        // either this
  std::unique_ptr<Server> server_;  // or this
  CheckpointHistory checkpoints_;
  std::unique_ptr<comm::Communicator> communicator_;
  std::vector<int> ranks_;                // of the first communicator, by rank of this one
  std::vector<fabric::PortSight> ports_;  // by rail
  bool communicatorFailed_ = false;
  bool shrunk_ = false;
  bool left_ = false;  // the others go on without this rank
  std::uint64_t firstIteration_ = 0;
  EventReport events_;
  std::optional<LongWait> waits_;  // between its begin and end, `events_` and `controller_` are its
  ResourceWatch resources_;
  Effort served_;  // of a server, until its last message
  bool startReceived_ = false;
  bool stopReceived_ = false;
};

Status RankRun::run() {
  RETURN_IF_ERROR(join());
  waits_.emplace(kLongWait, [this] { tellEvents(); });
  RETURN_IF_ERROR(warmUp());
  RETURN_IF_ERROR(awaitStart());
  resources_.look();
  resources_.sent(communicator_->events().counters.bytesSent);
  served_ = effortSoFar();
  RETURN_IF_ERROR(server_ ? server_->serve(serverHooks()) : train());
  return left_ ? okStatus() : finish();
}

Status RankRun::join() {
  ASSIGN_OR_RETURN(std::optional<Checkpoint> newest, loadNewest());
  ASSIGN_OR_RETURN(const comm::CommunicatorOptions options, communicatorOptions(config_));
  ASSIGN_OR_RETURN(communicator_, comm::Communicator::create(options));
  if (server_) {
    RETURN_IF_ERROR(server_->join(*communicator_));
  } else {
    RETURN_IF_ERROR(resumeFrom(std::move(newest)));
    RETURN_IF_ERROR(job_->join(*communicator_));
  }
  return send(wire::Joined{static_cast<int>(firstIteration_)});
}

Result<std::optional<Checkpoint>> RankRun::loadNewest() const {
  if (config_.checkpointPath.empty()) return std::optional<Checkpoint>();
  auto newest = checkpoints_.newest();
  if (newest.ok()) return std::optional(std::move(*newest));
  if (newest.status().code() == Code::kNotFound) return std::optional<Checkpoint>();
  return newest.status();
}

/// All ranks go on from the newest checkpoint that all of them have.
Status RankRun::resumeFrom(std::optional<Checkpoint> newest) {
  const auto own = static_cast<std::int64_t>(newest ? newest->iteration : 0);
  ASSIGN_OR_RETURN(const std::int64_t agreed, agree(own, reduction::ReduceOp::kMin));
  firstIteration_ = static_cast<std::uint64_t>(agreed);
  if (firstIteration_ == 0) return okStatus();
  if (agreed != own) {
    ASSIGN_OR_RETURN(newest, checkpoints_.at(firstIteration_));
  }
  if (job_->restoreState(newest->state)) return okStatus();
  return errorf(Code::kInvalidArgument, "the checkpoint {} is of another model: {} bytes, not {}",
                config_.checkpointPath, newest->state.size(), job_->state().size());
}

Server::Hooks RankRun::serverHooks() {
  return {.tell = [this](const wire::FromRank& message) { return send(message); },
          .tellEnd = [this](wire::End message) { return tellAll(std::move(message)); },
          .tellServed = [this](wire::Served message) { return tellAll(std::move(message)); }};
}

wire::Network RankRun::takeNews(bool last) {
  return events_.takeNew(communicator_->events(events_.cursor()), last);
}

wire::Network RankRun::takeLastNews() {
  wire::Network network = takeNews(/*last=*/true);
  addTrace(network, communicator_->trace());
  return network;
}

/// From t = 0 on with what has happened on the network since the last time.
template <typename Message>
Status RankRun::tellAll(Message message) {
  bool counts = true;
  if constexpr (requires { message.warmup; }) counts = !message.warmup;
  if (counts) {
    const comm::CommunicatorEvents events = communicator_->events(events_.cursor());
    message.network = events_.takeNew(events, /*last=*/false);
    resources_.look();
    const Effort effort = effortSoFar();
    resources_.spend(effort - served_);
    served_ = effort;
    resources_.sent(events_.bytesSent(events));
    message.resources = resources_.use();
  }
  return send(message);
}

Status RankRun::warmUp() {
  if (server_) RETURN_IF_ERROR(server_->warmUp(serverHooks()));
  for (std::uint64_t number = 0; job_ && number < job_->warmups(); ++number) {
    prepare(number, /*warmup=*/true);
    ASSIGN_OR_RETURN(const bool stop, stopAgreed());
    if (stop) break;
    RETURN_IF_ERROR(runIteration(number, /*warmup=*/true));
    RETURN_IF_ERROR(settle(number, /*warmup=*/true));
  }
  RETURN_IF_ERROR(communicator_->barrier()->wait());
  return send(wire::Ready{});
}

/// Of an iteration that takes long: if it never ends, this is all that is known.
void RankRun::tellEvents() { (void)send(wire::Events{takeNews(/*last=*/false)}); }

Status RankRun::train() {
  for (std::uint64_t iteration = firstIteration_; iteration < job_->iterations();) {
    const Result<bool> goesOn = trainOnce(iteration);
    if (goesOn.ok()) {
      if (!*goesOn) break;
      ++iteration;
      continue;
    }
    Status failure = goesOn.status();
    while (!failure.ok()) {
      if (!communicatorFailed_ || !mayShrink()) return failure;
      spdlog::warn("{}", failure.message());
      if (config_.excludeAfter > 0s) {
        if (std::vector<int> lost = lostRails(); !lost.empty()) return leave(std::move(lost));
      }
      const Result<std::uint64_t> next = shrink(iteration);
      failure = next.status();
      if (next.ok()) iteration = *next;
    }
  }
  return okStatus();
}

/// Who excludes ranks does so once, as AdapCC, whose controller ends with the first fault.
bool RankRun::mayShrink() const {
  return config_.shrinkPatience > 0s && !(config_.excludeAfter > 0s && shrunk_);
}

/// Rails whose port here is down.
std::vector<int> RankRun::lostRails() const {
  std::vector<int> lost;
  for (int rail = 0; rail < std::ssize(ports_); ++rail) {
    if (ports_[rail].lost()) lost.push_back(rail);
  }
  return lost;
}

/// Leaves the job for good: the others see that this process ends, and go on without it.
Status RankRun::leave(std::vector<int> lostRails) {
  left_ = true;
  return send(
      wire::Excluded{.at = now(), .rails = std::move(lostRails), .network = takeLastNews()});
}

/// False: all have agreed to end early, before it.
Result<bool> RankRun::trainOnce(std::uint64_t iteration) {
  prepare(iteration, /*warmup=*/false);
  ASSIGN_OR_RETURN(const bool stop, stopAgreed());
  if (stop) return false;
  RETURN_IF_ERROR(runIteration(iteration, /*warmup=*/false));
  RETURN_IF_ERROR(settle(iteration, /*warmup=*/false));
  return true;
}

/// Goes on with those that are left, from the furthest of them: an iteration may be done on some
/// when it fails on others. Returns the iteration that is next.
Result<std::uint64_t> RankRun::shrink(std::uint64_t iteration) {
  communicatorFailed_ = false;
  wire::Shrunk message{.noticed = now()};
  ASSIGN_OR_RETURN(comm::Communicator::Shrunk shrunk,
                   communicator_->shrink(config_.shrinkPatience));
  const comm::CommunicatorEvents old = communicator_->events(events_.cursor());
  message.network = events_.takeNew(old, /*last=*/true);
  std::vector<int> ranks;
  for (const int rank : shrunk.survivors) ranks.push_back(ranks_[rank]);
  ranks_ = std::move(ranks);
  events_.changeCommunicator(old, ranks_);
  communicator_ = std::move(shrunk.communicator);
  shrunk_ = true;
  RETURN_IF_ERROR(job_->goOnWith(ranks_));

  const auto own = static_cast<std::int64_t>(iteration);
  ASSIGN_OR_RETURN(const std::int64_t furthest, agree(own, reduction::ReduceOp::kMax));
  ASSIGN_OR_RETURN(const std::int64_t author,
                   agree(own == furthest ? communicator_->rank() : communicator_->size(),
                         reduction::ReduceOp::kMin));
  std::vector<std::byte> state(job_->state().begin(), job_->state().end());
  const auto shared = communicator_->broadcast(state.data(), state.data(), std::ssize(state),
                                               reduction::DataType::kU8, static_cast<int>(author));
  if (const Status status = shared->wait(); !status.ok()) {
    communicatorFailed_ = true;
    return status;
  }
  job_->restoreState(state);
  message.at = now();
  message.ranks = ranks_;
  message.iteration = static_cast<int>(furthest);
  RETURN_IF_ERROR(send(message));
  return static_cast<std::uint64_t>(furthest);
}

DataKey RankRun::keyOf(std::uint64_t number, bool warmup) const {
  return {config_.seed, warmup ? kWarmupData + number : number};
}

void RankRun::prepare(std::uint64_t number, bool warmup) {
  job_->prepare({.index = number, .warmup = warmup}, keyOf(number, warmup));
}

Status RankRun::runIteration(std::uint64_t number, bool warmup) {
  Status told;
  const auto tellStart = [&](TimePoint start) {
    told = send(wire::Begin{static_cast<int>(number), warmup, start});
    if (!warmup) waits_->begin();
  };
  const Effort before = effortSoFar();
  const Result<IterationTime> ran = job_->run(*communicator_, tellStart);
  waits_->end();
  communicatorFailed_ = !ran.ok();
  ASSIGN_OR_RETURN(const IterationTime time, ran);
  RETURN_IF_ERROR(told);
  const Effort effort = effortSoFar() - before;
  if (config_.corruptOneElement && config_.rank == 0 && number == 0 && !warmup) {
    job_->corruptResult(config_.seed);
  }
  JobCheck check = job_->check(keyOf(number, warmup));
  wire::End end{.iteration = static_cast<int>(number),
                .warmup = warmup,
                .at = time.end,
                .took = time.end - time.start,
                .wrong = check.wrong,
                .checked = check.checked,
                .digest = std::move(check.digest),
                .exposed = exposedOf(time)};
  if (!warmup) {
    job_->step();
    ASSIGN_OR_RETURN(end.checkpoint, saveIfDue(number + 1));
  }
  // From t = 0 on: what came before it is told with the first iteration.
  if (!warmup) {
    const comm::CommunicatorEvents events = communicator_->events(events_.cursor());
    end.network = events_.takeNew(events, /*last=*/false);
    resources_.look();
    resources_.spend(effort);
    resources_.sent(events_.bytesSent(events));
    end.resources = resources_.use();
  }
  return send(end);
}

/// What is found wrong on the way is told with the next iteration.
Status RankRun::settle(std::uint64_t number, bool warmup) {
  while (job_->runsAgain()) {
    prepare(number, warmup);
    ASSIGN_OR_RETURN(const bool stop, stopAgreed());
    if (stop) break;
    const Result<IterationTime> ran = job_->run(*communicator_, [](TimePoint) {});
    communicatorFailed_ = !ran.ok();
    RETURN_IF_ERROR(ran.status());
    const JobCheck check = job_->check(keyOf(number, warmup));
    RETURN_IF_ERROR(send(wire::Checked{check.wrong, check.checked}));
  }
  return okStatus();
}

/// How long it took.
Result<Duration> RankRun::saveIfDue(std::uint64_t nextIteration) {
  const auto every = static_cast<std::uint64_t>(config_.checkpointEvery);
  if (every == 0 || nextIteration % every != 0) return Duration::zero();
  const TimePoint saving = now();
  RETURN_IF_ERROR(checkpoints_.save(nextIteration, job_->state()));
  return now() - saving;
}

Status RankRun::finish() {
  Digest digest;
  if (job_) digest.add(job_->state().data(), job_->state().size());
  RETURN_IF_ERROR(send(wire::Done{digest.hex(), takeLastNews()}));
  return communicator_->finish();
}

Result<std::int64_t> RankRun::agree(std::int64_t value, reduction::ReduceOp op) {
  std::int64_t agreed = value;
  const Status status =
      communicator_->allReduce(&agreed, &agreed, 1, reduction::DataType::kI64, op)->wait();
  communicatorFailed_ = !status.ok();
  RETURN_IF_ERROR(status);
  return agreed;
}

/// A barrier, so that all ranks start the next iteration together, that also makes them agree on
/// ending early: some may have the controller's message and others not yet.
Result<bool> RankRun::stopAgreed() {
  RETURN_IF_ERROR(readController());
  ASSIGN_OR_RETURN(const std::int64_t stop,
                   agree(stopReceived_ ? 1 : 0, reduction::ReduceOp::kMax));
  return stop != 0;
}

Status RankRun::awaitStart() {
  while (!startReceived_ && !stopReceived_) {
    const auto message = controller_.receiveWithin(kControllerWait);
    if (message.status().code() == Code::kDeadlineExceeded) continue;
    if (!message.ok()) return message.status().withContext("wait for the start");
    RETURN_IF_ERROR(obey(*message));
  }
  return okStatus();
}

Status RankRun::readController() {
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<json> message, controller_.receive());
    if (!message) return okStatus();
    RETURN_IF_ERROR(obey(*message));
  }
}

Status RankRun::obey(const json& message) {
  ASSIGN_OR_RETURN(const auto told, wire::fromJson<wire::ToRank>(message));
  if (std::holds_alternative<wire::Start>(told)) startReceived_ = true;
  if (std::holds_alternative<wire::Stop>(told)) stopReceived_ = true;
  return okStatus();
}

/// The last message. If it cannot be told, the controller is gone, and knows.
void sendError(launch::MessageChannel& controller, const Status& why,
               std::optional<wire::Network> network = std::nullopt) {
  spdlog::error("{}", why.message());
  const wire::Error error{why.code(), why.message(), std::move(network)};
  (void)controller.send(wire::toJson(wire::FromRank(error)));
}

void RankRun::reportError(const Status& why) {
  std::optional<wire::Network> network;
  if (communicator_) {
    communicator_->abort(why.message());
    network = takeLastNews();
  }
  sendError(controller_, why, std::move(network));
}

int runRank(launch::MessageChannel& controller) {
  const auto first = controller.receiveWithin(kConfigBudget);
  const auto config = first.ok() ? rankConfigFromJson(*first) : first.status();
  if (!config.ok()) {
    sendError(controller, config.status());
    return 1;
  }
  if (!initLog(fmt::format("rank {}", config->rank)).ok()) return 1;
  RankRun rank(*config, controller);
  const Status status = rank.run();
  if (!status.ok()) rank.reportError(status);
  return status.ok() ? 0 : 1;
}

}  // namespace

int rankMain() {
  launch::MessageChannel controller{UniqueFd(launch::kMessagesFd)};
  try {
    const launch::Lifeline lifeline{UniqueFd(launch::kLifelineFd)};
    return runRank(controller);
  } catch (const std::exception& error) {  // no memory for the gradient, no thread, say
    sendError(controller, statusOf(error));
    return 1;
  }
}

}  // namespace faultline::workload
