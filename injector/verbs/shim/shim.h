#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "injector/verbs/armed_fault.h"
#include "injector/verbs/shim/address_table.h"
#include "injector/verbs/shim/objects.h"
#include "injector/verbs/shim/readers.h"
#include "injector/verbs/wire.h"

namespace faultline::injector::verbs::shim {

/// What this process has of verbs, and which faults are armed in it. One per process, never
/// destroyed. The program's threads tell it what they create; its posting and polling threads only
/// look (find(), fault()), inside a Readers::Guard; the control thread arms.
class Shim {
 public:
  static Shim& instance() {
    Shim* const shim = made_.load(std::memory_order_acquire);
    return shim != nullptr ? *shim : make();
  }

  // The program's calls, after they have succeeded.
  void opened(ibv_context& context);
  /// Before it is closed: what is made of it is not touched from here on.
  void closing(ibv_context& context);
  /// It is closed, and all that was made of it has gone along; or it could not be.
  void closed(ibv_context& context, bool gone);
  void created(ibv_qp& qp, QueuePair::Made made);
  void modified(ibv_qp& qp, const ibv_qp_attr& attributes, int mask);
  /// Before it is destroyed: it is not touched any more.
  void destroying(ibv_qp& qp);
  /// It is there and not known: it was made by a function that the shim does not see
  /// (mlx5dv_create_qp), or could not be destroyed. Asks the real library what it is.
  void adopt(ibv_qp& qp);
  void created(ibv_cq& cq);
  /// Before it is destroyed: what is held for it is dropped.
  void destroying(ibv_cq& cq);
  /// It could not be destroyed.
  void stays(ibv_cq& cq);
  /// Their extended ways to post and to poll. False when that cannot be done.
  bool takeOver(ibv_qp_ex& qp);
  bool takeOver(ibv_cq_ex& cq);
  void missedQueuePair();

  // Events of completion queues (events.h). What is not known is passed over.
  /// The program is about to ask for one, has asked, or has got it.
  void asks(const ibv_cq* cq);
  void asked(const ibv_cq* cq);
  void told(const ibv_cq* cq);
  /// Whether completions of a queue of this channel are held back, or could be.
  bool mayHold(const ibv_comp_channel& channel);
  /// When the first is due of those that are held for who has asked for an event.
  std::optional<TimePoint> nextDue(const ibv_comp_channel& channel);
  /// The queue of which something is due that the program has asked for; from now on that is told.
  /// nullptr: there is none.
  ibv_cq* tellOfHeld(const ibv_comp_channel& channel, TimePoint at);
  void sleepsInCall(const ibv_comp_channel& channel);
  /// How many of the `count` events that the program has taken note of were tellOfHeld()'s.
  unsigned int acknowledged(const ibv_cq* cq, unsigned int count);
  /// Waits until all of tellOfHeld()'s are, as the real ibv_destroy_cq() does for the device's: who
  /// has got one may still look at the queue. Not where queue pairs use it, so that it will fail.
  void awaitAcknowledgement(const ibv_cq& cq);

  // From inside a Readers::Guard.
  QueuePair* find(const ibv_context* context, std::uint32_t number) const {
    return queue_pairs_.find(context, number);
  }
  CompletionQueue* find(const ibv_cq* cq) const { return completion_queues_.find(cq); }
  ArmedFault* fault(std::size_t slot) const { return slots_[slot].load(); }
  /// Changes with every fault that is armed or disarmed.
  std::uint64_t era() const { return era_.load(); }
  Readers& readers() { return readers_; }
  /// The queue pair's owner has done what was waited for: the control thread puts it in error.
  void doom(QueuePair& queue_pair, std::size_t slot);

  // The control thread's.
  /// Its number, by which it is disarmed. kNotFound when no queue pair is meant, kUnavailable when
  /// too many faults are armed.
  Result<std::uint64_t> arm(const Rule& rule);
  /// The last counters. kNotFound when it is not armed.
  Result<Counters> disarm(std::uint64_t number);
  Result<Counters> counters(std::uint64_t number);
  std::vector<QueuePairFacts> queuePairs();
  ShimFacts facts();
  /// Puts doomed queue pairs in error and forgets what is over. True while there is more to do
  /// soon.
  bool work();
  /// Called, from any thread, when work() is to be called.
  void onDoom(std::function<void()> wake);

  // Around fork().
  void beforeFork() { mutex_.lock(); }
  void afterForkInParent() { mutex_.unlock(); }
  /// Nothing is armed in the child, and nobody controls it.
  void afterForkInChild();

 private:
  Shim() = default;
  static Shim& make();
  static std::atomic<Shim*> made_;

  struct Context {
    std::string device;
    bool watched = false;
    bool closing = false;  ///< or closed: between closing() and closed()
  };
  struct Armed {
    std::uint64_t number = 0;
    Rule rule;
    std::unique_ptr<ArmedFault> fault;
  };
  using Lock = std::lock_guard<std::recursive_mutex>;
  using QueuePairs = std::map<ibv_qp*, std::unique_ptr<QueuePair>>;
  using CompletionQueues = std::map<ibv_cq*, std::unique_ptr<CompletionQueue>>;

  void add(ibv_qp& qp, QueuePair::Made made);
  void forgetObjectsOf(const ibv_context& context);
  void forget(QueuePairs::iterator at);
  void dropHeldOf(const QueuePair& queue_pair);
  void forget(CompletionQueues::iterator at);
  static std::optional<TimePoint> nextDue(const CompletionQueue& queue);
  /// Which of the armed faults concern it, from now on. False when there is no memory for one of
  /// them, which is left out then, and that is counted.
  bool reconsider(QueuePair& queue_pair);
  /// What is done on it and its completion queues is looked into from now on.
  static void concern(const QueuePair& queue_pair);
  /// Throws std::bad_alloc.
  void prepareToHold(QueuePair& queue_pair, const Rule& rule);
  /// Unless another rate still concerns it: what is posted from now on is not noted, and the next
  /// rate must not take its completions for those of what was.
  void forgetSends(QueuePair& queue_pair);
  /// Asks the device for its state, which may have changed by itself. False when it does not tell,
  /// or is just being closed.
  bool refresh(QueuePair& queue_pair) const;
  /// Whether it can be put in error, and somebody would notice: one that is reset is nobody's. If
  /// it is in error already, that is counted.
  bool isAlive(QueuePair& queue_pair, ArmedFault& fault) const;
  void putInError(QueuePair& queue_pair, ArmedFault& fault) const;
  std::uint64_t concerned(std::size_t slot) const;
  /// What is held in completion queues of which no armed fault holds any back is due now. In others
  /// what a fault held that has ended keeps its time.
  void release();
  bool holdsAnything() const;
  std::size_t slotOf(std::uint64_t number) const;

  std::recursive_mutex mutex_;  ///< recursive: providers may call what they themselves export
  std::map<ibv_context*, Context> contexts_;
  QueuePairs owned_queue_pairs_;
  CompletionQueues owned_completion_queues_;
  /// Events of ours that are not acknowledged, of queues that may be gone: that can come late.
  std::map<const ibv_cq*, unsigned int> our_events_;
  std::array<Armed, kMostFaults> armed_;
  /// Disarmed, and known to completions that are held: kept until nothing is held any more.
  std::vector<std::unique_ptr<ArmedFault>> retired_;
  std::uint64_t last_number_ = 0;
  std::uint64_t missed_queue_pairs_ = 0;
  std::function<void()> wake_;

  AddressTable<QueuePair> queue_pairs_;
  AddressTable<CompletionQueue> completion_queues_;
  std::array<std::atomic<ArmedFault*>, kMostFaults> slots_{};
  std::atomic<std::uint64_t> era_{1};
  std::atomic<bool> any_doomed_{false};
  std::atomic<bool> any_events_{false};  ///< of ours have been told
  Readers readers_;
};

}  // namespace faultline::injector::verbs::shim
