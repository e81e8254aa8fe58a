#include "harness/agent/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "harness/agent/fault_holder.h"
#include "harness/agent/fault_service.h"
#include "harness/agent/guarded_job.h"
#include "harness/agent/host_facts.h"
#include "harness/agent/host_lock.h"
#include "harness/agent/port_counters.h"
#include "harness/agent/relayed_rank.h"
#include "harness/agent/shared_folder.h"
#include "harness/launch/lifeline.h"
#include "harness/launch/process.h"

namespace faultline::agent {

using nlohmann::json;

namespace {

constexpr Duration kSetupBudget = 30s;
// For a last word to a controller that does not read.
constexpr Duration kLastWordBudget = 500ms;
// For the run before this one to have ended: its agent ends what it has started.
constexpr Duration kLockBudget = 5s;

class Agent {
 public:
  Agent(launch::MessageChannel& controller, const LookAtRails& rails)
      : controller_(controller), rails_(rails) {}
  Status setUp();
  Status serve();
  Status tell(const wire::FromAgent& message) {
    const Status told = controller_.send(wire::toJson(message));
    deaf_ = deaf_ || !told.ok();
    return told;
  }
  /// Ends ranks, and then says why, if the controller may still hear it.
  void leave(const std::string& why);

 private:
  Status hearController();
  Status obey(const wire::ToAgent& message);
  /// Numbers only rise: a message that comes twice starts nothing twice.
  Status takeNumber(int job);
  Status start(const wire::StartJob& message);
  Status startGuard(const wire::StartJob& message);
  Status start(const wire::StartRank& message);
  Status startRank(const wire::StartRank& message);
  Status started(int id, const Status& status);
  Status watch(const wire::WatchCounters& message);
  Status tellCounters();
  void end(int id);
  Duration untilSomethingIsDue() const;
  Status keepUp();
  Status lookForEnd(int id, launch::Process& rank);
  /// What a process has said or written is often a mark: what has been carried until then comes
  /// before it.
  Status tellAfterCounters(const wire::FromAgent& message);
  Status shareFolder(const wire::ShareFolder& message);
  Status tellHolder(const wire::TellHolder& message);
  Status startHolder(const wire::TellHolder& message);
  Status relayHolder(int id, launch::Process& holder);
  Status relayService();

  launch::MessageChannel& controller_;
  const LookAtRails& rails_;
  std::string networkFile_;  // of the node; empty: our own
  UniqueFd network_;
  int newestJob_ = 0;
  std::optional<JobFolder> shared_;  // that other nodes see, too
  std::map<int, GuardedJob> jobs_;
  std::map<int, launch::Process> ranks_;
  std::map<int, RelayedRank> relayed_;
  std::map<int, launch::Process> faults_;  // holders
  std::map<int, ServiceHolder> strikes_;   // faults that the service of this machine holds
  std::optional<ServiceQuestion> question_;
  std::optional<PortCounters> counters_;  // that are told again and again
  std::optional<HostLock> lock_;
  bool deaf_ = false;  // the controller cannot be told anything
  Duration lease_{};   // 0: none
  TimePoint heard_ = now();
};

Status Agent::setUp() {
  ASSIGN_OR_RETURN(const json message, controller_.receiveWithin(kSetupBudget));
  ASSIGN_OR_RETURN(const auto setup,
                   (wire::firstFromJson<wire::ToAgent, wire::AgentSetup>(message)));
  networkFile_ = setup.networkNamespace;
  if (!networkFile_.empty()) {
    network_.reset(::open(networkFile_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!network_) return Status::fromErrno(errno, "open " + networkFile_);
  }
  if (!setup.lock.empty()) {
    ASSIGN_OR_RETURN(lock_, HostLock::hold(setup.lock, setup.holder, kLockBudget));
  }
  lease_ = setup.lease;
  heard_ = now();
  return tell(wire::AgentReady{});
}

void Agent::leave(const std::string& why) {
  for (auto& [id, rank] : relayed_) rank.kill();
  for (auto& [id, rank] : ranks_) (void)rank.signal(SIGKILL);
  relayed_.clear();
  ranks_.clear();
  if (deaf_) return;
  const TimePoint deadline = now() + kLastWordBudget;
  (void)controller_.send(wire::toJson(wire::FromAgent(wire::AgentError{why})), {},
                         [deadline] { return now() >= deadline; });
}

Duration Agent::untilSomethingIsDue() const {
  Duration left = Duration::max();
  if (lease_ > Duration::zero()) left = heard_ + lease_ - now();
  if (counters_) left = std::min(left, counters_->due() - now());
  if (question_) left = std::min(left, question_->due() - now());
  for (const auto& [id, strike] : strikes_) {
    if (strike.fd() >= 0) left = std::min(left, strike.due() - now());
  }
  for (const auto& [id, job] : jobs_) {
    if (job.due() != TimePoint::max()) left = std::min(left, job.due() - now());
  }
  return std::max(left, Duration::zero());
}

Status Agent::keepUp() {
  if (lease_ > Duration::zero() && now() >= heard_ + lease_) {
    return errorf(Code::kDeadlineExceeded, "nothing has been heard from the controller for {}",
                  formatDuration(lease_));
  }
  return counters_ && now() >= counters_->due() ? tellCounters() : okStatus();
}

Status Agent::hearController() {
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<json> message, controller_.receive());
    if (!message) return okStatus();
    heard_ = now();
    ASSIGN_OR_RETURN(const auto asked, wire::fromJson<wire::ToAgent>(*message));
    RETURN_IF_ERROR(obey(asked));
  }
}

Status Agent::serve() {
  // What has come together with the first message makes nothing readable any more.
  RETURN_IF_ERROR(hearController());
  for (;;) {
    std::vector<pollfd> ready{{controller_.fd(), POLLIN, 0}, {lock_ ? lock_->fd() : -1, POLLIN, 0}};
    for (auto& [id, job] : jobs_) job.addTo(ready);
    for (auto& [id, rank] : ranks_) ready.push_back({rank.pidFd(), POLLIN, 0});
    for (auto& [id, rank] : relayed_) rank.addTo(ready);
    for (auto& [id, holder] : faults_) ready.push_back({holder.messages().fd(), POLLIN, 0});
    for (auto& [id, strike] : strikes_) ready.push_back({strike.fd(), POLLIN, 0});
    if (question_) ready.push_back({question_->fd(), POLLIN, 0});
    Duration pause = untilSomethingIsDue();
    for (auto& [id, rank] : relayed_) {
      if (rank.hasMore()) pause = Duration::zero();
    }
    const timespec wait{.tv_sec = duration_cast<std::chrono::seconds>(pause).count(),
                        .tv_nsec = (pause % 1s).count()};
    if (::ppoll(ready.data(), ready.size(), pause == Duration::max() ? nullptr : &wait, nullptr) <
            0 &&
        errno != EINTR) {
      return Status::fromErrno(errno, "wait for messages");
    }
    RETURN_IF_ERROR(hearController());
    if (lock_) lock_->answer();
    RETURN_IF_ERROR(keepUp());
    for (auto at = jobs_.begin(); at != jobs_.end();) {
      const auto current = at++;
      ASSIGN_OR_RETURN(const bool over, current->second.pump([this](const wire::FromAgent& said) {
        return tellAfterCounters(said);
      }));
      if (over) jobs_.erase(current);
    }
    for (auto at = ranks_.begin(); at != ranks_.end();) {
      const auto current = at++;
      RETURN_IF_ERROR(lookForEnd(current->first, current->second));
    }
    for (auto at = relayed_.begin(); at != relayed_.end();) {
      const auto current = at++;
      ASSIGN_OR_RETURN(const std::optional<std::string> ended,
                       current->second.pump(current->first, [this](const wire::FromAgent& said) {
                         return tellAfterCounters(said);
                       }));
      if (!ended) continue;
      const wire::RankEnded end{current->first, *ended};
      relayed_.erase(current);
      RETURN_IF_ERROR(tell(end));
    }
    for (auto at = faults_.begin(); at != faults_.end();) {
      const auto current = at++;
      RETURN_IF_ERROR(relayHolder(current->first, current->second));
    }
    RETURN_IF_ERROR(relayService());
  }
}

Status Agent::takeNumber(int job) {
  if (job > newestJob_) {
    newestJob_ = job;
    return okStatus();
  }
  return errorf(Code::kInvalidArgument, "it is to start job {}, and job {} has been started", job,
                newestJob_);
}

Status Agent::obey(const wire::ToAgent& message) {
  if (const auto* const job = std::get_if<wire::StartJob>(&message)) {
    RETURN_IF_ERROR(takeNumber(job->job));
    return start(*job);
  }
  if (const auto* const rank = std::get_if<wire::StartRank>(&message)) {
    RETURN_IF_ERROR(takeNumber(rank->job));
    return start(*rank);
  }
  if (const auto* const job = std::get_if<wire::CheckJob>(&message)) {
    return tell(wire::JobChecked{whatIsMissing(*job)});
  }
  if (const auto* const folder = std::get_if<wire::ShareFolder>(&message)) {
    return tell(wire::FolderShared{wire::Outcome::of(shareFolder(*folder))});
  }
  if (const auto* const ended = std::get_if<wire::EndJob>(&message)) {
    end(ended->job);
    return okStatus();
  }
  if (const auto* const told = std::get_if<wire::TellGuard>(&message)) {
    const auto found = jobs_.find(told->job);
    if (found != jobs_.end()) found->second.tell(told->message);
    return okStatus();
  }
  if (const auto* const told = std::get_if<wire::TellHolder>(&message)) return tellHolder(*told);
  if (const auto* const end = std::get_if<wire::EndFault>(&message)) {
    faults_.erase(end->fault);
    strikes_.erase(end->fault);
    return okStatus();
  }
  if (std::holds_alternative<wire::AskClock>(message)) return tell(wire::ClockTold{now()});
  if (std::holds_alternative<wire::AskRails>(message)) {
    return tell(wire::RailsTold{rails_()});
  }
  if (std::holds_alternative<wire::AskFacts>(message)) {
    ASSIGN_OR_RETURN(const wire::HostFacts facts, readHostFacts());
    return tell(facts);
  }
  if (const auto* const counters = std::get_if<wire::WatchCounters>(&message)) {
    return watch(*counters);
  }
  if (const auto* const asked = std::get_if<wire::AskFaultService>(&message)) {
    greet(asked->peers);
    question_.emplace(asked->question, std::string(wire::kServiceSocket));
    return okStatus();
  }
  if (const auto* const told = std::get_if<wire::TellRank>(&message)) {
    const auto found = relayed_.find(told->job);
    return found == relayed_.end() ? okStatus() : found->second.tell(told->message);
  }
  return errorf(Code::kInvalidArgument, "a node is set up once");
}

Status Agent::started(int id, const Status& status) {
  if (status.ok()) return tell(wire::JobStarted{id});
  return tell(wire::JobRefused{id, wire::Outcome::of(status)});
}

Status Agent::start(const wire::StartJob& message) {
  return started(message.job, startGuard(message));
}

Status Agent::startGuard(const wire::StartJob& message) {
  std::optional<UniqueFd> log;
  if (message.logs) log = controller_.takeDescriptor();
  ASSIGN_OR_RETURN(GuardedJob job, GuardedJob::start(message, networkFile_, log ? log->get() : -1));
  jobs_.erase(message.job);
  jobs_.emplace(message.job, std::move(job));
  return okStatus();
}

Status Agent::start(const wire::StartRank& message) {
  return started(message.job, startRank(message));
}

Status Agent::startRank(const wire::StartRank& message) {
  if (message.relayed) {
    ASSIGN_OR_RETURN(RelayedRank rank, RelayedRank::start(message, network_.get()));
    relayed_.emplace(message.job, std::move(rank));
    return okStatus();
  }
  const std::optional<UniqueFd> messages = controller_.takeDescriptor();
  const std::optional<UniqueFd> log = controller_.takeDescriptor();
  if (!messages || !log) {
    return errorf(Code::kInvalidArgument, "the descriptors of a rank have not come");
  }
  launch::SpawnOptions options;
  options.arguments = {"faultline", "rank"};
  options.namespace_fd = network_.get();
  options.environment = message.environment;
  options.messages_fd = messages->get();
  options.stderr_fd = log->get();
  ASSIGN_OR_RETURN(launch::Process rank, launch::Process::spawn(options));
  ranks_.emplace(message.job, std::move(rank));
  return okStatus();
}

Status Agent::watch(const wire::WatchCounters& message) {
  ASSIGN_OR_RETURN(counters_, PortCounters::open(network_.get(), message));
  return tellCounters();
}

Status Agent::tellCounters() {
  ASSIGN_OR_RETURN(wire::CountersTold told, counters_->read(now()));
  return tell(told);
}

void Agent::end(int id) {
  // One that has just ended needs no signal. How it ends is seen as ever.
  if (const auto rank = relayed_.find(id); rank != relayed_.end()) rank->second.kill();
  if (const auto rank = ranks_.find(id); rank != ranks_.end()) (void)rank->second.signal(SIGKILL);
  if (const auto job = jobs_.find(id); job != jobs_.end()) job->second.kill();
}

Status Agent::lookForEnd(int id, launch::Process& rank) {
  ASSIGN_OR_RETURN(const std::optional<launch::ExitStatus> ended, rank.tryWait());
  if (!ended) return okStatus();
  ranks_.erase(id);
  return tell(wire::RankEnded{id, ended->toString()});
}

Status Agent::tellAfterCounters(const wire::FromAgent& message) {
  if (counters_ && counters_->isOld(now())) RETURN_IF_ERROR(tellCounters());
  return tell(message);
}

Status Agent::shareFolder(const wire::ShareFolder& message) {
  if (!message.first) return seeSharedFolder(message.folder, message.token);
  shared_.reset();
  ASSIGN_OR_RETURN(JobFolder made, makeSharedFolder(message.folder, message.token));
  shared_.emplace(std::move(made));
  return okStatus();
}

Status Agent::tellHolder(const wire::TellHolder& message) {
  if (const auto strike = strikes_.find(message.fault); strike != strikes_.end()) {
    return strike->second.tell(message.message);
  }
  const auto found = faults_.find(message.fault);
  const Status told = found == faults_.end()
                          ? startHolder(message)
                          : found->second.messages().send(wire::toJson(message.message));
  if (told.ok()) return told;
  return tell(wire::HolderSaid{message.fault, wire::Gone{told.message()}});
}

/// In the first process namespace, where it sees all programs; of interfaces it is the service.
Status Agent::startHolder(const wire::TellHolder& message) {
  const auto* const fault = std::get_if<wire::HeldFault>(&message.message);
  if (fault != nullptr && !fault->interface.empty()) {
    strikes_.try_emplace(message.fault, *fault, lease_, std::string(wire::kServiceSocket));
    return okStatus();
  }
  launch::SpawnOptions options;
  options.body = faultHolderMain;
  options.first_message = wire::toJson(message.message);
  ASSIGN_OR_RETURN(launch::Process holder, launch::Process::spawn(options));
  faults_.emplace(message.fault, std::move(holder));
  return okStatus();
}

Status Agent::relayHolder(int id, launch::Process& holder) {
  for (;;) {
    const Result<std::optional<json>> message = holder.messages().receive();
    if (message.ok() && !*message) return okStatus();
    auto said = message.ok() ? wire::spoken<wire::FromHolder>(**message)
                             : Result<wire::FromHolder>(message.status());
    if (!said.ok()) {
      faults_.erase(id);  // which takes the fault back
      return tell(wire::HolderSaid{id, wire::Gone{said.status().message()}});
    }
    RETURN_IF_ERROR(tell(wire::HolderSaid{id, std::move(*said)}));
  }
}

/// Passes on what it says, and tells it that we are there: while the controller is, as without it
/// we end.
Status Agent::relayService() {
  for (auto& [id, strike] : strikes_) {
    strike.stillThere(now());
    while (auto said = strike.heard())
      RETURN_IF_ERROR(tell(wire::HolderSaid{id, std::move(*said)}));
  }
  if (!question_) return okStatus();
  const std::optional<wire::FaultServiceTold> answer = question_->answer(now());
  if (!answer) return okStatus();
  question_.reset();
  return tell(*answer);
}

}  // namespace

Status serve(launch::MessageChannel& controller, const LookAtRails& rails) {
  Agent agent(controller, rails);
  Status status = agent.setUp();
  if (status.ok()) status = agent.serve();
  agent.leave(status.message());
  return status;
}

int agentMain(int argc, char** argv) {
  constexpr std::string_view kOverStreams = "--stdio";
  if (argc > 2 && argv[2] == kOverStreams) return stdioAgentMain();
  // Those that go to all processes of a run are for the controller, which ends its agents in order.
  sigset_t others;
  ::sigemptyset(&others);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&others, number);
  ::sigprocmask(SIG_BLOCK, &others, nullptr);
  const launch::Lifeline lifeline{UniqueFd(launch::kLifelineFd)};
  launch::MessageChannel controller{UniqueFd(launch::kMessagesFd)};
  // Until the controller is gone, which is the usual end.
  (void)serve(controller, [] { return std::vector<wire::RailState>(); });
  return 0;
}

}  // namespace faultline::agent
