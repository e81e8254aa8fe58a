#include "resilient_ccl/comm/communicator.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <list>
#include <optional>
#include <thread>

#include "base/spsc_queue.h"
#include "resilient_ccl/comm/bootstrap.h"
#include "resilient_ccl/comm/executor.h"
#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::comm {
namespace {

// Collectives handed to the progress thread and not taken yet.
constexpr std::size_t kQueueCapacity = 1024;
// After a failure the progress thread goes on repeating the abort for this long.
constexpr Duration kAbortTime = 300ms;
constexpr Duration kPollTime = 50ms;
constexpr std::uint32_t kCommunicatorId = 1;
// Counters are copied for other threads this often while there is work.
constexpr Duration kCountersPause = 10ms;

}  // namespace

// --- Work ---

bool Work::test() const {
  const std::lock_guard lock(mutex_);
  return isDone_;
}

Status Work::wait() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return isDone_; });
  return status_;
}

TimePoint Work::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

void Work::complete(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    isDone_ = true;
    status_ = status;
    finished_ = now();
  }
  done_.notify_all();
}

// --- Communicator ---

class Communicator::Impl : public fabric::FabricClient, public MessagePort {
 public:
  explicit Impl(const CommunicatorOptions& options)
      : options_(options), submitted_(kQueueCapacity) {}

  ~Impl() override { stop(); }

  Status open();
  std::shared_ptr<Work> submit(const void* source, void* target, std::int64_t count, DataType type,
                               ReduceOp op);
  void abort(const std::string& reason);
  Status finish();
  CommunicatorEvents events() const;

  const CommunicatorOptions& options() const { return options_; }
  std::byte barrierByte_[4] = {};  // what a barrier reduces

 private:
  struct Command {
    Executor::Job job;
    std::shared_ptr<Work> work;
  };
  struct Running {
    std::unique_ptr<Executor> executor;
    std::shared_ptr<Work> work;
  };

  // FabricClient; all on the progress thread.
  void sendDone(int, std::uint64_t token) override { messageDone(token); }
  void receiveDone(int, std::uint64_t token, Bytes) override { messageDone(token); }
  void failedOver(int peer, const channel::Failover& failover) override {
    if (leaving()) return;
    const std::lock_guard lock(mutex_);
    events_.failovers.push_back({peer, failover});
  }
  void failedBack(int peer, int rail, TimePoint when) override {
    if (leaving()) return;
    const std::lock_guard lock(mutex_);
    events_.failbacks.push_back({peer, rail, when});
  }
  void located(int peer, int rail, channel::Where where) override {
    if (leaving()) return;
    const std::lock_guard lock(mutex_);
    auto& failovers = events_.failovers;
    const auto latest = std::find_if(failovers.rbegin(), failovers.rend(), [&](const auto& it) {
      return it.peer == peer && it.failover.rail == rail;
    });
    if (latest != failovers.rend()) latest->failover.where = where;
  }
  void linkFailed(int, const Status& why) override {
    if (!leaving()) fail(why, /*toldByPeer=*/why.code() == Code::kAborted);
  }

  /// Goodbye is being said: what the others close is no error any more.
  bool leaving() const { return leaving_.load(std::memory_order_acquire); }

  // MessagePort
  void postSend(int peer, const channel::MessageKey& key, const std::byte* data, Bytes length,
                std::uint64_t token) override {
    fabric_->postSend(peer, key, data, length, token);
  }
  void postReceive(int peer, const channel::MessageKey& key, std::byte* region, Bytes capacity,
                   std::uint64_t token) override {
    fabric_->postReceive(peer, key, region, capacity, token);
  }

  void progress();
  void takeCommands();
  void messageDone(std::uint64_t token);
  void workDone(std::list<Running>::iterator running);
  void connectionReadable(int rank, int fd);
  void fail(const Status& why, bool toldByPeer = false);
  void publishCounters();
  void wake();
  void stop();
  Result<std::shared_ptr<const schedule::Schedule>> scheduleFor(std::int64_t count);

  CommunicatorOptions options_;
  std::unique_ptr<Bootstrap> bootstrap_;
  std::unique_ptr<fabric::Fabric> fabric_;
  UniqueFd wakeup_;
  std::thread thread_;

  // Caller's thread.
  SpscQueue<Command> submitted_;
  std::uint64_t nextCollective_ = 0;
  std::shared_ptr<const schedule::Schedule> lastSchedule_;

  // Progress thread.
  std::list<Running> running_;
  std::uint64_t nextToken_ = 0;
  std::optional<Status> failure_;
  TimePoint failedAt_{};
  TimePoint countersDue_{};

  std::atomic<bool> stopping_{false};
  std::atomic<bool> leaving_{false};  // goodbye is being said: closed connections are no error
  mutable std::mutex mutex_;          // events_ and abortReason_
  CommunicatorEvents events_;
  std::optional<std::string> abortReason_;
};

Status Communicator::Impl::open() {
  const TimePoint deadline = now() + options_.setupTimeout;
  fabric::FabricOptions fabricOptions = options_.fabric;
  fabricOptions.self = options_.rank;
  ASSIGN_OR_RETURN(fabric_, fabric::Fabric::create(fabricOptions, *this));
  ASSIGN_OR_RETURN(bootstrap_, Bootstrap::connect({.rank = options_.rank,
                                                   .size = options_.size,
                                                   .jobKey = fabricOptions.jobKey,
                                                   .address = fabricOptions.managementAddress,
                                                   .rendezvous = options_.rendezvous,
                                                   .timeout = options_.setupTimeout}));
  ASSIGN_OR_RETURN(const std::vector<std::string> blobs,
                   bootstrap_->allGather(fabric_->address().serialize()));
  std::vector<fabric::ProcessAddress> addresses;
  for (const std::string& blob : blobs) {
    ASSIGN_OR_RETURN(addresses.emplace_back(), fabric::ProcessAddress::parse(blob));
  }
  RETURN_IF_ERROR(fabric_->connect(addresses));
  while (!fabric_->allRailsUp() && !failure_) {
    if (now() > deadline) {
      return errorf(Code::kDeadlineExceeded,
                    "not all rails of rank {} could be connected within {}", options_.rank,
                    formatDuration(options_.setupTimeout));
    }
    RETURN_IF_ERROR(fabric_->poll(kPollTime));
  }
  if (failure_) return *failure_;
  // Nobody returns before everybody's rails are up.
  ASSIGN_OR_RETURN(const std::vector<std::string> ready, bootstrap_->allGather("ready"));
  (void)ready;

  wakeup_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wakeup_) return Status::fromErrno(errno, "create an event descriptor");
  RETURN_IF_ERROR(fabric_->watch(wakeup_.get(), [this] {
    std::uint64_t count;
    (void)!read(wakeup_.get(), &count, sizeof(count));
  }));
  for (const auto& [rank, fd] : bootstrap_->connections()) {
    RETURN_IF_ERROR(
        fabric_->watch(fd, [this, rank = rank, fd = fd] { connectionReadable(rank, fd); }));
  }
  thread_ = std::thread([this] { progress(); });
  return okStatus();
}

void Communicator::Impl::progress() {
  while (!stopping_.load(std::memory_order_acquire)) {
    takeCommands();
    if (const Status status = fabric_->poll(kPollTime); !status.ok()) fail(status);
    if (now() >= countersDue_) publishCounters();
  }
  takeCommands();  // an abort may have come with the end
  // The abort must reach everybody although datagrams get lost.
  while (failure_ && now() < failedAt_ + kAbortTime) (void)fabric_->poll(kPollTime);
  fail(errorf(Code::kAborted, "the communicator was closed with work under way"));
}

void Communicator::Impl::publishCounters() {
  countersDue_ = now() + kCountersPause;
  if (leaving()) return;
  const std::lock_guard lock(mutex_);
  events_.counters = fabric_->counters();
}

void Communicator::Impl::takeCommands() {
  std::optional<std::string> reason;
  {
    const std::lock_guard lock(mutex_);
    reason = std::exchange(abortReason_, std::nullopt);
  }
  if (reason) fail(errorf(Code::kAborted, "{}", *reason));
  while (auto command = submitted_.pop()) {
    if (failure_) {
      command->work->complete(*failure_);
      continue;
    }
    Running& running = running_.emplace_back();
    running.executor = std::make_unique<Executor>(std::move(command->job), *this, nextToken_);
    running.work = std::move(command->work);
    running.executor->start();
    if (running.executor->finished()) workDone(std::prev(running_.end()));
  }
}

void Communicator::Impl::messageDone(std::uint64_t token) {
  for (auto running = running_.begin(); running != running_.end(); ++running) {
    if (!running->executor->messageDone(token)) continue;
    if (running->executor->finished()) workDone(running);
    return;
  }
}

void Communicator::Impl::workDone(std::list<Running>::iterator running) {
  const std::shared_ptr<Work> work = std::move(running->work);
  running_.erase(running);
  // Who has waited for everything finds everything counted.
  if (running_.empty()) publishCounters();
  work->complete(okStatus());
}

void Communicator::Impl::connectionReadable(int rank, int fd) {
  char byte;
  const ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  fabric_->unwatch(fd);  // a byte is a goodbye, which `finish` reads
  if (got > 0 || leaving()) return;
  fail(errorf(Code::kUnavailable, "the process of rank {} is gone", rank));
}

void Communicator::Impl::fail(const Status& why, bool toldByPeer) {
  if (failure_) return;
  failure_ = why;
  failedAt_ = now();
  if (!toldByPeer) {  // else its author has told everybody
    failure_ = Status(why.code(), fmt::format("rank {}: {}", options_.rank, why.message()));
    fabric_->abort(failure_->message());
  }
  fabric_->shutDown();  // the callers get their buffers back, and staging memory goes
  for (Running& running : running_) running.work->complete(*failure_);
  running_.clear();
}

Result<std::shared_ptr<const schedule::Schedule>> Communicator::Impl::scheduleFor(
    std::int64_t count) {
  if (!lastSchedule_ || lastSchedule_->elements() != count) {
    ASSIGN_OR_RETURN(lastSchedule_,
                     schedule::makeSchedule(options_.algorithm, {.ranks = options_.size,
                                                                 .elements = count,
                                                                 .segments = options_.segments}));
  }
  return lastSchedule_;
}

std::shared_ptr<Work> Communicator::Impl::submit(const void* source, void* target,
                                                 std::int64_t count, DataType type, ReduceOp op) {
  auto work = std::make_shared<Work>();
  if (!thread_.joinable()) {
    work->complete(errorf(Code::kInvalidArgument, "the communicator has been finished"));
    return work;
  }
  auto chosen = scheduleFor(count);
  if (!chosen.ok()) {
    work->complete(chosen.status());
    return work;
  }
  if (source != target && count > 0) std::memcpy(target, source, count * sizeOf(type));
  Command command{.job = {.schedule = std::move(*chosen),
                          .rank = options_.rank,
                          .buffer = target,
                          .type = type,
                          .op = op,
                          .communicator = kCommunicatorId,
                          .number = nextCollective_++},
                  .work = work};
  while (!submitted_.push(std::move(command))) std::this_thread::yield();
  wake();
  return work;
}

void Communicator::Impl::wake() {
  const std::uint64_t one = 1;
  (void)!write(wakeup_.get(), &one, sizeof(one));
}

void Communicator::Impl::abort(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    abortReason_ = reason;
  }
  wake();
}

void Communicator::Impl::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  wake();
  thread_.join();
}

Status Communicator::Impl::finish() {
  leaving_.store(true, std::memory_order_release);
  // The fabric stays polled meanwhile: others may still need our acknowledgements.
  const Status status = bootstrap_->goodbye();
  stop();
  return status;
}

CommunicatorEvents Communicator::Impl::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() = default;

Result<std::unique_ptr<Communicator>> Communicator::create(const CommunicatorOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  RETURN_IF_ERROR(
      impl->open().withContext(fmt::format("rank {} joins the communicator", options.rank)));
  return std::unique_ptr<Communicator>(new Communicator(std::move(impl)));
}

int Communicator::rank() const { return impl_->options().rank; }
int Communicator::size() const { return impl_->options().size; }

std::shared_ptr<Work> Communicator::allReduce(const void* source, void* target, std::int64_t count,
                                              DataType type, ReduceOp op) {
  return impl_->submit(source, target, count, type, op);
}

std::shared_ptr<Work> Communicator::barrier() {
  // A reduction in which every rank's element is needed for everybody's result.
  return impl_->submit(impl_->barrierByte_, impl_->barrierByte_, 1, DataType::kI32, ReduceOp::kMax);
}

void Communicator::abort(const std::string& reason) { impl_->abort(reason); }
Status Communicator::finish() { return impl_->finish(); }
CommunicatorEvents Communicator::events() const { return impl_->events(); }

}  // namespace faultline::comm
