#include "resilient_ccl/comm/engine.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/log.h"
#include "base/system_calls.h"
#include "resilient_ccl/comm/engine_word.h"
#include "resilient_ccl/comm/node_layout.h"
#include "resilient_ccl/comm/point_to_point.h"

namespace faultline::comm {
namespace {

// So long after the first word of a failure all others have arrived: nobody tells another one who
// has been told, and a word is repeated every few milliseconds.
constexpr Duration kAgreementTime = 100ms;
// After a failure the progress thread goes on repeating the abort for this long.
constexpr Duration kAbortTime = 300ms;
constexpr Duration kPollTime = 50ms;
// While there is work, ports are looked at this often.
constexpr Duration kPlanningTime = 10ms;
// Counters are copied for other threads this often while there is work.
constexpr Duration kCountersPause = 10ms;

/// What a process tells the others of itself: its door, and its addresses.
std::string introduce(const transport::tcp::Endpoint& door, const fabric::ProcessAddress& address) {
  std::string bytes(sizeof(door.address) + sizeof(door.port), '\0');
  std::memcpy(bytes.data(), &door.address, sizeof(door.address));
  std::memcpy(bytes.data() + sizeof(door.address), &door.port, sizeof(door.port));
  return bytes + address.serialize();
}

Result<fabric::ProcessAddress> parseIntroduction(const std::string& bytes,
                                                 transport::tcp::Endpoint& door) {
  constexpr std::size_t kDoor = sizeof(door.address) + sizeof(door.port);
  if (bytes.size() < kDoor) {
    return errorf(Code::kInvalidArgument, "a process address of {} bytes", bytes.size());
  }
  std::memcpy(&door.address, bytes.data(), sizeof(door.address));
  std::memcpy(&door.port, bytes.data() + sizeof(door.address), sizeof(door.port));
  return fabric::ProcessAddress::parse(bytes.substr(kDoor));
}

}  // namespace

Engine::Engine(const CommunicatorOptions& options)
    : options_(options), staging_(options.sliceBytes) {
  if (options.telemetry == telemetry::Mode::kOff) return;
  recorder_ = std::make_unique<telemetry::Recorder>(options.telemetry);
  if (options.telemetry == telemetry::Mode::kOn) {
    collector_ = std::make_unique<telemetry::Collector>(*recorder_);
  }
}

Engine::~Engine() {
  stop();
  planning_.reset();  // its thread calls back
}

Result<std::shared_ptr<Engine>> Engine::start(const CommunicatorOptions& options) {
  std::shared_ptr<Engine> engine(new Engine(options));
  ASSIGN_OR_RETURN(UniqueFd door,
                   transport::tcp::openListener({options.fabric.managementAddress, "", 0}));
  engine->door_ = std::make_shared<const UniqueFd>(std::move(door));
  RETURN_IF_ERROR(engine->open({}));
  return engine;
}

Result<std::shared_ptr<Engine>> Engine::restart(const CommunicatorOptions& options,
                                                const Engine& failed, UniqueFd listener) {
  std::shared_ptr<Engine> engine(new Engine(options));
  engine->door_ = failed.door_;
  RETURN_IF_ERROR(engine->open(std::move(listener)));
  return engine;
}

Status Engine::open(UniqueFd listener) {
  const TimePoint deadline = now() + options_.setupTimeout;
  fabric::FabricOptions fabricOptions = options_.fabric;
  fabricOptions.self = options_.rank;
  fabricOptions.recorder = recorder_.get();
  ASSIGN_OR_RETURN(
      fabric_, fabric::Fabric::create(fabricOptions, static_cast<fabric::FabricClient&>(*this)));
  ASSIGN_OR_RETURN(bootstrap_, Bootstrap::connect({.rank = options_.rank,
                                                   .size = options_.size,
                                                   .jobKey = fabricOptions.jobKey,
                                                   .address = fabricOptions.managementAddress,
                                                   .rendezvous = options_.rendezvous,
                                                   .listener = std::move(listener),
                                                   .timeout = options_.setupTimeout}));
  ASSIGN_OR_RETURN(const transport::tcp::Endpoint door,
                   transport::tcp::localEndpoint(this->door()));
  ASSIGN_OR_RETURN(const std::vector<std::string> blobs,
                   bootstrap_->allGather(introduce(door, fabric_->address())));
  std::vector<fabric::ProcessAddress> addresses;
  for (const std::string& blob : blobs) {
    ASSIGN_OR_RETURN(addresses.emplace_back(), parseIntroduction(blob, doors_.emplace_back()));
    hosts_.push_back(addresses.back().host);
  }
  RETURN_IF_ERROR(fabric_->connect(addresses));
  RETURN_IF_ERROR(awaitRails(deadline));
  bool joined = false;
  if (!failure_) {
    ASSIGN_OR_RETURN(joined, awaitOthers(deadline));
  }
  if (!joined) {
    // All have the same word then, and have heard it.
    while (now() < failedAt_ + kAbortTime) (void)fabric_->poll(kPollTime);
    return *failure_;
  }
  if (const std::string missing = fabric_->missingRails(); !missing.empty()) {
    spdlog::warn("begins without {}: not connected within {}", missing,
                 formatDuration(options_.railGrace));
  }
  fabric_->start();
  if (options_.planned) {
    planning_ = std::make_unique<Planning>(
        *fabric_, options_.rank, static_cast<int>(fabricOptions.nics.size()), options_.health,
        PlanningCalls{
            .fail = [this](const Status& why) { fail(why); },
            .event =
                [this](PlanEvent event) {
                  const std::lock_guard lock(mutex_);
                  events_.planned(std::move(event));
                },
            .tested =
                [this](const PortTestEvent& event) {
                  const std::lock_guard lock(mutex_);
                  events_.tested(event);
                },
            .onProgressThread = [this](auto call) { onProgressThread(std::move(call)); }});
  }

  wakeup_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wakeup_) return Status::fromErrno(errno, "create an event descriptor");
  RETURN_IF_ERROR(fabric_->watch(wakeup_.get(), [this] {
    std::uint64_t count;
    countSystemCall();
    (void)!read(wakeup_.get(), &count, sizeof(count));
  }));
  for (const auto& [rank, fd] : bootstrap_->connections()) {
    RETURN_IF_ERROR(
        fabric_->watch(fd, [this, rank = rank, fd = fd] { connectionReadable(rank, fd); }));
  }
  thread_ = std::thread([this] { progress(); });
  return okStatus();
}

Status Engine::awaitRails(TimePoint deadline) {
  const bool mayMiss = options_.fabric.link.resilient;
  const TimePoint begin = now(), grace = begin + options_.railGrace;
  const TimePoint end = std::min(deadline, grace + options_.fabric.link.giveUp);
  while (!failure_ && !fabric_->allRailsUp()) {
    const bool reached = mayMiss && fabric_->allPeersReached();
    if (reached && now() >= grace) break;
    if (now() >= end) {
      fail(errorf(Code::kDeadlineExceeded,
                  "{} could be connected within {}: {} missing; look at these ports, their "
                  "addresses and the network between them",
                  mayMiss ? "not one rail to some rank" : "not all rails",
                  formatDuration(end - begin), fabric_->missingRails()));
    }
    RETURN_IF_ERROR(fabric_->poll(kPollTime));
  }
  return okStatus();
}

/// Nobody begins before everybody has what it needs; false: somebody will not get it, and all know.
Result<bool> Engine::awaitOthers(TimePoint deadline) {
  constexpr const char* kReady = "ready";
  std::set<int> silent;
  for (const auto& [rank, fd] : bootstrap_->connections()) {
    RETURN_IF_ERROR(fabric_->watch(fd, [this, &silent, fd = fd] {
      fabric_->unwatch(fd);
      silent.erase(fd);
    }));
    silent.insert(fd);
  }
  Status told = bootstrap_->offer(kReady);
  // The word of one who has begun, and failed, may be faster than that all are ready.
  const auto end = [&] { return failure_ ? failedAt_ + kAgreementTime : deadline; };
  while (told.ok() && !silent.empty() && now() < end()) {
    RETURN_IF_ERROR(fabric_->poll(kPollTime));
  }
  for (const int fd : silent) fabric_->unwatch(fd);
  if (told.ok() && !silent.empty()) {
    told = errorf(Code::kDeadlineExceeded, "not all ranks had their rails within {}",
                  formatDuration(options_.setupTimeout));
  }
  if (told.ok()) told = bootstrap_->collect(kReady).status();
  if (!told.ok()) fail(told);
  return told.ok();
}

// --- progress thread ---

void Engine::sendDone(int, std::uint64_t token) { messageDone(token, 0); }
void Engine::receiveDone(int, std::uint64_t token, Bytes length) { messageDone(token, length); }

void Engine::failedOver(int peer, const channel::Failover& failover) {
  if (leaving()) return;
  const std::lock_guard lock(mutex_);
  events_.failedOver(peer, failover);
}

void Engine::failedBack(int peer, int rail, TimePoint when) {
  if (leaving()) return;
  const std::lock_guard lock(mutex_);
  events_.failedBack(peer, rail, when);
}

void Engine::degraded(int peer, const channel::RailDegradation& change) {
  if (leaving()) return;
  const std::lock_guard lock(mutex_);
  events_.degraded(peer, change);
}

void Engine::explained(int peer, int rail, channel::Cause cause, channel::Where where) {
  if (leaving()) return;
  const std::lock_guard lock(mutex_);
  events_.explained(peer, rail, cause, where);
}

void Engine::linkFailed(int peer, const Status& why) {
  if (goodbyes_.contains(peer)) return;  // it has left
  fail(why, /*toldByPeer=*/why.code() == Code::kAborted);
}

void Engine::wordArrived(int peer, std::span<const std::byte> bytes) {
  if (planning_ && planning_->wordArrived(peer, bytes, now())) return;
  const auto word = EngineWord::parse(bytes);
  if (!word) return;
  switch (word->kind) {
    case EngineWord::Kind::kGoodbye:
      goodbyes_.insert(peer);
      break;
    case EngineWord::Kind::kRollCall: {
      const auto group = std::ranges::find(groups_, word->about, [](auto& it) { return it->id(); });
      const EngineWord answer{.kind = EngineWord::Kind::kPresent,
                              .number = group == groups_.end() ? 0 : (*group)->begun(),
                              .about = word->about};
      fabric_->tell(peer, answer.bytes());
      break;
    }
    case EngineWord::Kind::kPresent:
      if (rollCall_ && rollCall_->communicator() == word->about) {
        rollCall_->present(peer, word->number);
      }
      break;
  }
}

void Engine::progress() {
  while (!stopping_.load(std::memory_order_acquire)) {
    takeCommands();
    const bool looking = planning_ && (!running_.empty() || planning_->testing());
    const Duration patience = reducer_.busy() ? Duration::zero()
                              : looking       ? kPlanningTime
                                              : kPollTime;
    if (const Status status = fabric_->poll(patience); !status.ok()) fail(status);
    reducer_.poll(*this);
    if (planning_ && !failure_) planning_->onTick(now());
    if (failure_ && !givenUp_ && now() >= failedAt_ + kAgreementTime) giveUp();
    if (now() >= countersDue_) {
      checkDeadlines();
      publishCounters();
    }
    if (leaving()) takeLeave();
  }
  takeCommands();  // an abort may have come with the end
  // The abort must reach everybody although datagrams get lost.
  while (failure_ && now() < failedAt_ + kAbortTime) (void)fabric_->poll(kPollTime);
  fail(errorf(Code::kAborted, "the communicator was closed with work under way"));
  if (!givenUp_) giveUp();
}

void Engine::publishCounters() {
  countersDue_ = now() + kCountersPause;
  if (leaving()) return;
  const std::lock_guard lock(mutex_);
  events_.counted(fabric_->counters());
}

void Engine::readMail() {
  if (!mail_.exchange(false, std::memory_order_acquire)) return;
  std::optional<std::string> reason;
  std::vector<std::shared_ptr<Group>> groups;
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    reason = std::exchange(abortReason_, std::nullopt);
    std::swap(groups, newGroups_);
    std::swap(calls, calls_);
  }
  for (const auto& group : groups) {
    groups_.push_back(group);
    if (group->plan()) planning_->add(group->id(), group->members(), *group->plan());
  }
  for (const auto& call : calls) call();
  if (reason) fail(errorf(Code::kAborted, "{}", *reason));
}

void Engine::takeCommands() {
  readMail();
  for (auto next = groups_.begin(); next != groups_.end();) {
    const auto group = next++;
    const bool closed = (*group)->closed();  // before the last command is looked for
    while (auto command = (*group)->pop()) {
      if (givenUp_) {
        command->work->complete(*failure_);
        continue;
      }
      const std::uint64_t number = command->job.number;
      if (!isPointToPoint(number)) (*group)->beginning(number);
      if ((*group)->plan() && !isPointToPoint(number)) {
        (*group)->held().push_back(std::move(*command));
      } else {
        begin(*group, std::move(*command));
      }
    }
    beginHeld(*group);
    if (!closed || !(*group)->held().empty()) continue;
    if ((*group)->plan()) planning_->remove((*group)->id());
    groups_.erase(group);
  }
}

/// Those whose turn it is: as many as may begin, in their order.
void Engine::beginHeld(const std::shared_ptr<Group>& group) {
  std::deque<Group::Command>& held = group->held();
  while (!held.empty() && !failure_) {
    Group::Command& first = held.front();
    auto go = planning_->next(group->id(), first.planFor, now());
    if (!go) return;
    if (first.planFor) first.job.program = std::move(go->program);
    first.work->tried_ = go->tried;
    Group::Command command = std::move(first);
    held.pop_front();
    begin(group, std::move(command));
  }
}

void Engine::begin(const std::shared_ptr<Group>& group, Group::Command command) {
  constexpr std::uint32_t kTags = std::uint32_t{1} << 31;  // the highest bit is for tests
  const std::uint32_t tag = nextTag_++ % kTags;
  Running& running = running_[tag];
  running.group = group;
  running.program = command.job.program;
  running.number = command.job.number;
  running.executor =
      std::make_unique<Executor>(std::move(command.job), *group, reducer_, staging_, tag);
  running.work = std::move(command.work);
  running.began = command.called;
  running.executor->start();
  if (running.executor->finished()) workDone(tag);
}

void Engine::messageDone(std::uint64_t token, Bytes length) {
  if ((token & Planning::kTestToken) != 0) return planning_->messageDone(token, length, now());
  const auto running = running_.find(Executor::tagOf(token));
  if (running == running_.end()) return;  // given up meanwhile
  running->second.executor->messageDone(token);
  if (running->second.executor->finished()) workDone(running->first);
}

void Engine::reduced(std::uint64_t token) {
  const auto running = running_.find(Executor::tagOf(token));
  running->second.executor->reduced(token);
  if (running->second.executor->finished()) workDone(running->first);
}

void Engine::workDone(std::uint32_t tag) {
  const auto running = running_.find(tag);
  const std::shared_ptr<Work> work = std::move(running->second.work);
  const Group& group = *running->second.group;
  if (group.plan() && !isPointToPoint(running->second.number)) {
    planning_->done(group.id(), running->second.number, now());
  }
  running_.erase(running);
  // Who has waited for everything finds everything counted.
  if (running_.empty()) publishCounters();
  work->complete(okStatus());
}

void Engine::connectionReadable(int rank, int fd) {
  char byte;
  const ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  fabric_->unwatch(fd);
  if (!goodbyes_.contains(rank)) fabric_->doubt(rank);
}

void Engine::checkDeadlines() {
  if (failure_) return;
  if (rollCall_ && rollCall_->over(now())) {
    return fail(errorf(Code::kDeadlineExceeded,
                       "collective {} of communicator {} is not done within {}: {}",
                       rollCall_->number(), rollCall_->communicator(),
                       formatDuration(options_.collectiveTimeout), rollCall_->result()));
  }
  if (rollCall_) return;
  const auto isOld = [this, time = now()](TimePoint called) {
    return time - called > options_.collectiveTimeout;
  };
  const auto oldest = std::ranges::min_element(
      running_, {}, [](const auto& running) { return running.second.began; });
  if (oldest != running_.end() && isOld(oldest->second.began)) {
    const Running& late = oldest->second;
    return overdue(*late.group, late.number, late.program.get());
  }
  for (const auto& group : groups_) {
    if (group->held().empty() || !isOld(group->held().front().called)) continue;
    return overdue(*group, group->held().front().job.number, nullptr);
  }
}

/// `program`: of a message between two; else it is not needed.
void Engine::overdue(const Group& group, std::uint64_t number, const Program* program) {
  if (isPointToPoint(number)) {
    const Program::Step& step = program->lanes()[0].steps[0];
    return fail(errorf(Code::kDeadlineExceeded,
                       "a message {} rank {} is not done within {}: it takes no part",
                       step.kind == schedule::OpKind::kSend ? "to" : "from",
                       group.members()[step.peer], formatDuration(options_.collectiveTimeout)));
  }
  rollCall_.emplace(group.id(), number, group.members(), now());
  const EngineWord question{.kind = EngineWord::Kind::kRollCall, .about = group.id()};
  for (const int member : group.members()) {
    if (member != options_.rank) fabric_->tell(member, question.bytes());
  }
  rollCall_->present(options_.rank, group.begun());
}

/// Nobody goes before everybody has said goodbye and been told: who is missed then is not missed.
void Engine::takeLeave() {
  if (!leaveBy_) {
    leaveBy_ = now() + options_.setupTimeout;
    for (int rank = 0; rank < options_.size; ++rank) {
      if (rank != options_.rank) {
        fabric_->tell(rank, EngineWord{.kind = EngineWord::Kind::kGoodbye}.bytes());
      }
    }
  }
  if (givenUp_) return part(*failure_);
  const bool allSaid = std::ssize(goodbyes_) == options_.size - 1;
  if (allSaid && fabric_->told()) return part(okStatus());
  if (now() < *leaveBy_) return;
  if (allSaid) return part(okStatus());  // somebody has left before its last word came
  std::string missing;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (rank == options_.rank || goodbyes_.contains(rank)) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  part(errorf(Code::kDeadlineExceeded, "rank(s) {} did not say goodbye within {}", missing,
              formatDuration(options_.setupTimeout)));
}

void Engine::part(const Status& how) {
  const std::lock_guard lock(mutex_);
  if (!parted_) parted_ = how;
  partedNow_.notify_all();
}

void Engine::fail(const Status& why, bool toldByPeer) {
  if (givenUp_ || (failure_ && !toldByPeer)) return;
  if (!failure_) failedAt_ = now();
  // As long as the others will have it.
  const Status named =
      toldByPeer ? why
                 : Status(why.code(), fmt::format("rank {}: {}", options_.rank, why.message())
                                          .substr(0, fabric::Fabric::kLongestReason));
  if (!toldByPeer) fabric_->abort(named.message());  // else its author has told everybody
  // Several may have noticed at once. All take the same word.
  if (!failure_ || named.message() < failure_->message()) failure_ = named;
}

void Engine::giveUp() {
  givenUp_ = true;
  fabric_->shutDown();  // the callers get their buffers back, and staging memory goes
  reducer_.drop();
  for (auto& [tag, running] : running_) running.work->complete(*failure_);
  running_.clear();
  for (const auto& group : groups_) {
    for (const Group::Command& command : group->held()) command.work->complete(*failure_);
    group->held().clear();
  }
}

// --- other threads ---

std::shared_ptr<Group> Engine::addGroup(std::uint32_t id, std::vector<int> members,
                                        std::optional<PlanSettings> plan) {
  auto group = std::make_shared<Group>(*fabric_, id, std::move(members), std::move(plan));
  {
    const std::lock_guard lock(mutex_);
    newGroups_.push_back(group);
  }
  sendMail();
  return group;
}

int Engine::ranksPerNode(const std::vector<int>& members) const {
  std::vector<std::string> hosts;
  for (const int member : members) hosts.push_back(hosts_[member]);
  return comm::ranksPerNode(hosts);
}

void Engine::onProgressThread(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }
  sendMail();
}

std::shared_ptr<Work> Engine::submit(Group& group, Executor::Job job,
                                     std::optional<PlanKey> planFor) {
  auto work = std::make_shared<Work>();
  if (ended_.load(std::memory_order_acquire)) {
    work->complete(errorf(Code::kInvalidArgument, "the communicator has been finished"));
    return work;
  }
  Group::Command command{
      .job = std::move(job), .work = work, .planFor = std::move(planFor), .called = now()};
  while (!group.push(std::move(command))) std::this_thread::yield();
  wake();
  return work;
}

void Engine::wake() {
  const std::uint64_t one = 1;
  countSystemCall();
  (void)!write(wakeup_.get(), &one, sizeof(one));
}

void Engine::sendMail() {
  mail_.store(true, std::memory_order_release);
  wake();
}

void Engine::abort(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    abortReason_ = reason;
  }
  sendMail();
}

void Engine::revoke(const std::string& reason) {
  abort(reason);
  stop();
}

void Engine::stop() {
  ended_.store(true, std::memory_order_release);
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  wake();
  thread_.join();
}

Status Engine::finish() {
  leaving_.store(true, std::memory_order_release);
  wake();
  // The fabric stays polled meanwhile: others may still need our acknowledgements.
  std::unique_lock lock(mutex_);
  partedNow_.wait(lock, [this] { return parted_.has_value(); });
  lock.unlock();
  stop();
  return *parted_;
}

CommunicatorEvents Engine::events(const EventCursor& cursor) const {
  const std::lock_guard lock(mutex_);
  return events_.since(cursor);
}

telemetry::Trace Engine::trace() const {
  if (collector_) return collector_->trace();
  return {.events = {}, .made = recorder_ ? recorder_->made() : 0, .dropped = 0};
}

}  // namespace faultline::comm
