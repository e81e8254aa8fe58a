#include "resilient_ccl/comm/engine.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/system_calls.h"
#include "resilient_ccl/comm/engine_word.h"
#include "resilient_ccl/comm/node_layout.h"
#include "resilient_ccl/comm/point_to_point.h"

namespace faultline::comm {
namespace {

// While there is work, ports are looked at this often.
constexpr Duration kPlanningTime = 10ms;
// Counters are copied for other threads this often while there is work.
constexpr Duration kCountersPause = 10ms;

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

void Engine::framesLost(int peer, int rail, Bytes frame) {
  if (leaving()) return;
  spdlog::warn(
      "rail {} to rank {}: datagrams of {} bytes are lost, and short ones are not; look at the MTU "
      "of every port along the path",
      rail, peer, frame);
}

void Engine::pathProved(int /*peer*/, const channel::PathProved& proved, const std::string& words) {
  if (leaving()) return;
  spdlog::log(proved.passes ? spdlog::level::info : spdlog::level::warn, "{}", words);
}

void Engine::explained(int peer, int rail, channel::Cause cause, channel::Where where) {
  if (leaving()) return;
  const std::lock_guard lock(mutex_);
  events_.explained(peer, rail, cause, where);
}

// A schedule has no message that both ends do not know the length of, and closes no stream.
void Engine::sendFailed(int, std::uint64_t, const Status& why) { fail(why, /*toldByPeer=*/false); }
void Engine::receiveFailed(int, std::uint64_t, const Status& why) {
  fail(why, /*toldByPeer=*/false);
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
    if (first.planFor) {
      first.job.program = std::move(go->program);
      // What is shared has been copied by who called it; of an AllReduce nothing.
      const bool nothing = first.planFor->collective == schedule::Collective::kAllReduce;
      if (nothing || !first.job.program->readsSource()) Executor::copySource(first.job);
    }
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
  Group::Command command{.job = std::move(job), .work = work, .planFor = planFor, .called = now()};
  // A full queue does not take it. NOLINTNEXTLINE(bugprone-use-after-move)
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
