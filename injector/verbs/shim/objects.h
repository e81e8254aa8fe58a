#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "injector/verbs/armed_fault.h"
#include "injector/verbs/held_queue.h"
#include "injector/verbs/rule.h"
#include "injector/verbs/send_log.h"
#include "injector/verbs/shim/address_table.h"
#include "injector/verbs/shim/spin_flag.h"

/// What the shim knows of the program's objects.
namespace faultline::injector::verbs::shim {

/// How many faults can be armed in one process at a time: a bit each.
inline constexpr std::size_t kMostFaults = 32;
using FaultBits = std::uint32_t;

/// A held completion knows whose doing that is.
struct HeldCompletion {
  ibv_wc completion{};
  ArmedFault* fault = nullptr;  ///< nullptr: only waits for its turn
  std::uint64_t bytes = 0;
  ArmedFault* rewrote = nullptr;  ///< what has made an error of it, which has yet to happen
};

/// A queue pair. Its identity never changes; `facts` are the control side's, under its mutex.
struct QueuePair {
  /// What it was made with.
  struct Made {
    bool signalAll = false;   ///< every request gives a completion, flagged or not
    std::uint32_t depth = 1;  ///< requests that its send queue can hold
  };

  QueuePair(ibv_qp* owned, Made as)
      : qp(owned),
        context(owned->context),
        completionQueues{owned->send_cq, owned->recv_cq},
        number(owned->qp_num),
        made(as) {}

  ibv_qp* const qp;
  ibv_context* const context;
  const std::array<ibv_cq*, 2> completionQueues;  ///< may be one twice, or nullptr
  const std::uint32_t number;
  const Made made;
  QueuePairFacts facts;
  /// Made by a parent of this process: it is the parent's, and no fault of this one concerns it.
  bool inherited = false;
  bool isMeant(const Match& match) const { return !inherited && matches(match, facts); }

  std::atomic<FaultBits> faults{0};  ///< those that concern it
  std::atomic<FaultBits> doomed{0};  ///< those that have decided to put it in error
  std::atomic<FaultBits> met{0};     ///< and those that have done so: each does it once

  bool hasMet(std::size_t slot) const { return ((met.load() >> slot) & 1U) != 0; }

  /// What was posted; there once a rate has concerned it.
  std::atomic<SendLog*> log{nullptr};
  SpinFlag log_flag;

  /// Requests between ibv_wr_start() and ibv_wr_complete(): of the one thread that is between them.
  /// Others of the same queue pair wait for the provider's lock, so that this is touched only while
  /// that is held.
  struct Batch {
    std::uint64_t era = 0;  ///< of the faults that it was begun under
    int error = 0;
    ArmedFault* fault = nullptr;
    std::size_t noted = 0;  ///< of its requests, in the log
  } batch;

  std::atomic<QueuePair*> next{nullptr};
  std::size_t place(unsigned bits) const { return placeOf(context, bits, number); }
  bool is(const ibv_context* of, std::uint32_t qp_number) const {
    return context == of && number == qp_number;
  }

  ~QueuePair() { delete log.load(); }
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
};

struct CompletionQueue {
  explicit CompletionQueue(ibv_cq* owned)
      : cq(owned), context(owned->context), channel(owned->channel) {}

  ibv_cq* const cq;
  ibv_context* const context;
  ibv_comp_channel* const channel;  ///< nullptr: it gives no events

  /// How often the program has asked for an event of the next completion without getting one: it
  /// may be about to sleep until then. No more than twice: who asks again before it takes the event
  /// of the first time has still asked after that.
  std::atomic<int> asked{0};
  void ask() {
    int before = asked.load();
    while (before < 2 && !asked.compare_exchange_weak(before, before + 1)) {
    }
  }
  /// False when it has not asked.
  bool tell() {
    int before = asked.load();
    while (before > 0 && !asked.compare_exchange_weak(before, before - 1)) {
    }
    return before > 0;
  }
  /// It sleeps in ibv_get_cq_event(), where the shim can wake it, and not on the channel's
  /// descriptor.
  std::atomic<bool> sleepsInCall{false};

  /// There once a fault that holds has concerned it. `flag` guards what it points to.
  std::atomic<HeldQueue<HeldCompletion>*> held{nullptr};
  SpinFlag flag;
  // What it has, for who looks without `flag`: publish() says it, under that.
  std::atomic<std::size_t> heldNow{0};
  std::atomic<TimePoint> firstDue{TimePoint{}};  ///< only while heldNow is not 0
  void publish() {
    const HeldQueue<HeldCompletion>& now = *held.load();
    if (!now.empty()) firstDue.store(now.nextDue());
    heldNow.store(now.size());
  }
  std::atomic<bool> release{false};  ///< deliver all of it at once

  /// The program has asked for an event since the device's queue was last seen empty: of what is
  /// taken out of it until then, some may have come before that, and gives no event.
  std::atomic<bool> askedAnew{false};
  // Of what is held, that which gives no event any more, and how much of it is left. Of `flag`.
  TimePoint eventlessUntil{};  ///< what was taken up to then
  std::size_t eventless = 0;
  void nowEventless(TimePoint at) {
    eventlessUntil = at;
    eventless = held.load()->size();
  }
  /// One that was held goes.
  void goes(const HeldQueue<HeldCompletion>::Held& entry) {
    if (eventless > 0 && entry.since <= eventlessUntil) --eventless;
  }

  std::atomic<CompletionQueue*> next{nullptr};
  std::size_t place(unsigned bits) const { return placeOf(cq, bits); }
  bool is(const ibv_cq* other) const { return cq == other; }

  ~CompletionQueue() { delete held.load(); }
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
};

}  // namespace faultline::injector::verbs::shim
