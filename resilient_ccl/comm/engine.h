#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/spsc_queue.h"
#include "base/unique_fd.h"
#include "resilient_ccl/comm/bootstrap.h"
#include "resilient_ccl/comm/communicator.h"
#include "resilient_ccl/comm/executor.h"
#include "resilient_ccl/comm/planning.h"
#include "resilient_ccl/comm/roll_call.h"
#include "resilient_ccl/telemetry/collector.h"

namespace faultline::comm {

/// What a communicator and the engine share: who belongs to it, and the collectives handed over.
/// The messages of its collectives go to its members' processes.
class Group : public MessagePort {
 public:
  struct Command {
    Executor::Job job;  ///< without a program when `planFor` says what it is
    std::shared_ptr<Work> work;
    std::optional<PlanKey> planFor;
    TimePoint called{};
  };

  /// `members`: the process of each of its ranks. With `plan` its collectives are planned.
  Group(fabric::Fabric& fabric, std::uint32_t id, std::vector<int> members,
        std::optional<PlanSettings> plan = std::nullopt)
      : fabric_(fabric),
        id_(id),
        members_(std::move(members)),
        plan_(std::move(plan)),
        submitted_(kQueueCapacity) {}

  std::uint32_t id() const { return id_; }
  const std::vector<int>& members() const { return members_; }
  const std::optional<PlanSettings>& plan() const { return plan_; }
  /// What a barrier reduces.
  std::int32_t& barrierElement() { return barrierElement_; }
  /// Collectives that the progress thread has been given; only there.
  std::uint64_t begun() const { return begun_; }
  void beginning(std::uint64_t number) { begun_ = number + 1; }
  /// Those of them that wait for their plan, in order; only there.
  std::deque<Command>& held() { return held_; }

  // From the communicator's thread to the progress thread.
  bool push(Command&& command) { return submitted_.push(std::move(command)); }
  std::optional<Command> pop() { return submitted_.pop(); }
  /// The communicator is gone: no commands follow.
  void close() { closed_.store(true, std::memory_order_release); }
  bool closed() const { return closed_.load(std::memory_order_acquire); }

  // MessagePort; peers are ranks of this group. On the progress thread.
  void postSend(int peer, const channel::MessageKey& key, const std::byte* data, Bytes length,
                std::uint64_t token) override {
    fabric_.postSend(members_[peer], key, data, length, token);
  }
  void postReceive(int peer, const channel::MessageKey& key, std::byte* region, Bytes capacity,
                   std::uint64_t token) override {
    fabric_.postReceive(members_[peer], key, region, capacity, token);
  }

 private:
  // Collectives handed to the progress thread and not taken yet.
  static constexpr std::size_t kQueueCapacity = 1024;

  fabric::Fabric& fabric_;
  const std::uint32_t id_;
  const std::vector<int> members_;
  const std::optional<PlanSettings> plan_;
  std::int32_t barrierElement_ = 0;
  std::uint64_t begun_ = 0;
  std::deque<Command> held_;
  SpscQueue<Command> submitted_;
  std::atomic<bool> closed_{false};
};

/// One process of a job: its fabric, its progress thread, and what all its communicators share,
/// which is one opinion about every rail and one end.
class Engine : private fabric::FabricClient, private ReducerClient {
 public:
  /// The number of the group of all processes of the job.
  static constexpr std::uint32_t kFirstGroup = 1;

  /// Joins the job; returns when all processes are there and connected.
  static Result<std::shared_ptr<Engine>> start(const CommunicatorOptions& options);
  /// The same by a process of a job that goes on after a failure (`gatherSurvivors`).
  static Result<std::shared_ptr<Engine>> restart(const CommunicatorOptions& options,
                                                 const Engine& failed, UniqueFd listener);
  ~Engine() override;

  /// A group that the progress thread serves from now on. Any thread.
  std::shared_ptr<Group> addGroup(std::uint32_t id, std::vector<int> members,
                                  std::optional<PlanSettings> plan = std::nullopt);

  /// A number for a new group: this process has used neither it nor any above it. `used` tells that
  /// a group has got this number or one below.
  std::uint32_t nextGroup() const { return nextGroup_.load(std::memory_order_relaxed); }
  void used(std::uint32_t group) { nextGroup_.store(group + 1, std::memory_order_relaxed); }

  /// As of comm::ranksPerNode, of these processes.
  int ranksPerNode(const std::vector<int>& members) const;

  /// Hands a collective of `group` over; one thread per group. With `planFor` its program follows
  /// from the plan that holds when its turn has come.
  std::shared_ptr<Work> submit(Group& group, Executor::Job job,
                               std::optional<PlanKey> planFor = std::nullopt);

  // As of Communicator.
  void abort(const std::string& reason);
  /// Ends all work of all ranks, as `abort`, and is through with it when this returns: what failed
  /// before stays the reason.
  void revoke(const std::string& reason);
  Status finish();
  /// Where this and the other processes are looked for after a failure.
  int door() const { return door_->get(); }
  const std::vector<transport::tcp::Endpoint>& doors() const { return doors_; }
  CommunicatorEvents events(const EventCursor& cursor) const;
  telemetry::Trace trace() const;

 private:
  struct Running {
    std::shared_ptr<Group> group;
    std::unique_ptr<Executor> executor;
    std::shared_ptr<Work> work;
    std::shared_ptr<const Program> program;
    std::uint64_t number;
    TimePoint began;
  };

  // So long after the first word of a failure all others have arrived: nobody tells another one who
  // has been told, and a word is repeated every few milliseconds.
  static constexpr Duration kAgreementTime = 100ms;
  // After a failure the progress thread goes on repeating the abort for this long.
  static constexpr Duration kAbortTime = 300ms;
  static constexpr Duration kPollTime = 50ms;
  static constexpr Duration kGoodbyeTime = 200ms;  ///< for all to acknowledge that we leave

  explicit Engine(const CommunicatorOptions& options);
  Status open(UniqueFd listener);
  Status awaitRails(TimePoint deadline);
  Result<bool> awaitOthers(TimePoint deadline);

  // FabricClient; all on the progress thread.
  void sendDone(int peer, std::uint64_t token) override;
  void receiveDone(int peer, std::uint64_t token, Bytes length) override;
  void sendFailed(int peer, std::uint64_t token, const Status& why) override;
  void receiveFailed(int peer, std::uint64_t token, const Status& why) override;
  void failedOver(int peer, const channel::Failover& failover) override;
  void failedBack(int peer, int rail, TimePoint when) override;
  void degraded(int peer, const channel::RailDegradation& change) override;
  void framesLost(int peer, int rail, Bytes frame) override;
  void pathProved(int peer, const channel::PathProved& proved, const std::string& words) override;
  void explained(int peer, int rail, channel::Cause cause, channel::Where where) override;
  void linkFailed(int peer, const Status& why) override;
  void wordArrived(int peer, std::span<const std::byte> word) override;

  /// Goodbye is being said: what the others close is no error any more.
  bool leaving() const { return leaving_.load(std::memory_order_acquire); }

  // ReducerClient; on the progress thread.
  void reduced(std::uint64_t token) override;

  void progress();
  void readMail();
  void takeCommands();
  void begin(const std::shared_ptr<Group>& group, Group::Command command);
  void beginHeld(const std::shared_ptr<Group>& group);
  void onProgressThread(std::function<void()> call);
  void messageDone(std::uint64_t token, Bytes length);
  void workDone(std::uint32_t tag);
  void connectionReadable(int rank, int fd);
  void checkDeadlines();
  void overdue(const Group& group, std::uint64_t number, const Program* program);
  void takeLeave();
  void part(const Status& how);
  void fail(const Status& why, bool toldByPeer = false);
  void giveUp();
  void publishCounters();
  void sendMail();
  void wake();
  void stop();

  CommunicatorOptions options_;
  std::unique_ptr<telemetry::Recorder> recorder_;    // null: telemetry is off
  std::unique_ptr<telemetry::Collector> collector_;  // null: nothing is kept
  std::unique_ptr<Bootstrap> bootstrap_;
  std::unique_ptr<fabric::Fabric> fabric_;
  std::vector<std::string> hosts_;        // of all processes
  std::shared_ptr<const UniqueFd> door_;  // listens as long as the process is in the job
  std::vector<transport::tcp::Endpoint> doors_;
  UniqueFd wakeup_;
  std::thread thread_;

  // Progress thread.
  std::list<std::shared_ptr<Group>> groups_;
  StagingPool staging_;
  PollingReducer reducer_;
  std::unordered_map<std::uint32_t, Running> running_;  // by the tag of its tokens
  std::unique_ptr<Planning> planning_;                  // null: nothing is planned
  std::uint32_t nextTag_ = 0;
  std::optional<Status> failure_;
  TimePoint failedAt_{};
  std::optional<RollCall> rollCall_;
  std::optional<TimePoint> leaveBy_;  // goodbye has been said; others must say it by then
  TimePoint doubtFrom_{};             // who does not acknowledge it by then may be gone
  std::set<int> goodbyes_;            // processes that have said it
  std::set<int> untold_;              // processes that have not acknowledged ours
  bool givenUp_ = false;  // all ranks have the same failure_ by now, and nothing is done any more
  TimePoint countersDue_{};

  std::atomic<std::uint32_t> nextGroup_{kFirstGroup + 1};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> ended_{false};  // no progress thread any more
  std::atomic<bool> mail_{false};   // there is something new in newGroups_, calls_, abortReason_
  mutable std::mutex mutex_;        // everything below
  EventLog events_;
  std::vector<std::shared_ptr<Group>> newGroups_;
  std::vector<std::function<void()>> calls_;  // for the progress thread
  std::optional<std::string> abortReason_;
  std::optional<Status> parted_;  // how the goodbye ended
  std::condition_variable partedNow_;
};

}  // namespace faultline::comm
