// What comes out of completion queues.
#include <time.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "injector/verbs/shim/armed_calls.h"
#include "injector/verbs/shim/fault_bits.h"
#include "injector/verbs/shim/shim.h"

namespace faultline::injector::verbs::shim {
namespace {

/// How long one look is put off while a program that is about to wait for an event is made to wait.
constexpr Duration kNap = 1ms;
/// Completions that are asked for at once while some are held back.
constexpr int kChunk = 16;

/// What is to become of one completion.
struct CompletionVerdict {
  bool lost = false;
  std::optional<TimePoint> due;   ///< held back until then
  ArmedFault* fault = nullptr;    ///< whose doing that is
  std::uint64_t bytes = 0;        ///< for which a held one stands
  ArmedFault* rewrote = nullptr;  ///< whose error it has become
};

/// What the slowest link that paces a send makes of its completion.
struct PacedSend {
  ArmedFault* link = nullptr;  ///< nullptr: none knows of it
  TimePoint due{};
  std::uint64_t bytes = 0;  ///< its own, and those of requests before it without a completion
};

/// A send has succeeded: the links carry it, and what counts with it, since each was posted.
PacedSend carrySend(const Shim& shim, QueuePair& queue_pair, FaultBits bits,
                    std::uint64_t work_request) {
  PacedSend sent;
  SendLog* const log = queue_pair.log.load(std::memory_order_acquire);
  if (log == nullptr) return sent;
  const std::lock_guard lock(queue_pair.log_flag);
  log->complete(work_request, [&](const SendLog::Entry& entry) {
    sent.bytes += entry.bytes;
    forEachFault(shim, bits, [&](std::size_t, ArmedFault& fault) {
      // Their bytes were counted when they were posted.
      if (!fault.rule().pacesSends() || !fault.strikes(0)) return;
      const TimePoint due = fault.carried(entry.posted, entry.bytes);
      if (sent.link != nullptr && due <= sent.due) return;
      sent.link = &fault;
      sent.due = due;
    });
  });
  return sent;
}

/// A completion is an error, of a send perhaps: of which side it is, an error does not tell. No
/// link carries it.
void failSend(QueuePair& queue_pair, std::uint64_t work_request) {
  SendLog* const log = queue_pair.log.load(std::memory_order_acquire);
  if (log == nullptr) return;
  const std::lock_guard lock(queue_pair.log_flag);
  log->fail(work_request);
}

CompletionVerdict onCompletion(Shim& shim, QueuePair& queue_pair, FaultBits bits,
                               ibv_wc& completion, TimePoint now) {
  CompletionVerdict verdict;
  if (completion.status != IBV_WC_SUCCESS) {  // and so the opcode is undefined
    forEachFault(shim, bits, [&](std::size_t, ArmedFault& fault) {
      fault.sawError(completion.status == IBV_WC_WR_FLUSH_ERR);
    });
    failSend(queue_pair, completion.wr_id);
    return verdict;
  }
  const bool received = (completion.opcode & IBV_WC_RECV) != 0;
  const Side side = received ? Side::kRecv : Side::kSend;
  const std::uint64_t bytes = received ? completion.byte_len : 0;
  const auto hold = [&](TimePoint due, ArmedFault& fault, std::uint64_t of) {
    if (verdict.due && *verdict.due >= due) return;
    verdict.due = due;
    verdict.fault = &fault;
    verdict.bytes = of;
  };
  PacedSend sent;
  if (!received) sent = carrySend(shim, queue_pair, bits, completion.wr_id);
  forEachFault(shim, bits, [&](std::size_t, ArmedFault& fault) {
    const Rule& rule = fault.rule();
    if (!includes(rule.side, side)) return;
    switch (rule.effect) {
      case Effect::kQpError:
      case Effect::kPostError:
        break;
      case Effect::kCompletionLoss:
        if (!verdict.lost && fault.strikes(bytes)) {
          verdict.lost = true;
          fault.happened();
        }
        break;
      case Effect::kCompletionRewrite:
        if (!verdict.lost && completion.status == IBV_WC_SUCCESS && fault.strikes(bytes)) {
          completion.status = static_cast<ibv_wc_status>(rule.status);
          completion.vendor_err = kInjectedVendorError;
          verdict.rewrote = &fault;
        }
        break;
      case Effect::kQpDelay:
        if (fault.strikes(bytes)) hold(now + rule.delay, fault, bytes);
        break;
      case Effect::kQpRate:
        if (received) {
          if (fault.strikes(bytes)) hold(fault.carried(now, bytes), fault, bytes);
        } else if (sent.link == &fault) {
          hold(sent.due, fault, sent.bytes);
        }
        break;
    }
  });
  return verdict;
}

/// Of a queue that nothing was held of when it was polled: those of `bits` that have begun to hold
/// since. Asked after the bits were read, which are set last.
FaultBits thatHold(const Shim& shim, const ibv_cq* cq, FaultBits bits) {
  const CompletionQueue* const queue = shim.find(cq);
  FaultBits holding = 0;
  if (queue == nullptr || queue->held.load(std::memory_order_acquire) == nullptr) return holding;
  forEachFault(shim, bits, [&](std::size_t slot, const ArmedFault& fault) {
    if (fault.rule().holds()) holding |= bitOf(slot);
  });
  return holding;
}

/// Judges those just polled: drops what is lost, and hands what is to wait to `hold`. Returns how
/// many are left, at the front. `unheld`: the queue, when nothing was held of it at that time.
template <typename Hold>
int sift(Shim& shim, const ibv_context* context, ibv_wc* completions, int count, TimePoint now,
         const ibv_cq* unheld, Hold hold) {
  int left = 0;
  for (int i = 0; i < count; ++i) {
    ibv_wc& completion = completions[i];
    QueuePair* const queue_pair = shim.find(context, completion.qp_num);
    FaultBits bits = faultsOf(queue_pair);
    if (unheld != nullptr) bits &= ~thatHold(shim, unheld, bits);
    CompletionVerdict verdict;
    if (bits != 0) verdict = onCompletion(shim, *queue_pair, bits, completion, now);
    // Nobody will see what it has become.
    if (verdict.lost && verdict.rewrote != nullptr) verdict.rewrote->struckNothing();
    if (verdict.lost || hold(completion, verdict)) continue;
    if (verdict.rewrote != nullptr) verdict.rewrote->happened();
    if (left != i) completions[left] = completion;
    ++left;
  }
  return left;
}

bool anyConcerned(const ibv_context* context, const ibv_wc* completions, int count) {
  for (int i = 0; i < count; ++i) {
    if (g_concerned.has(context, completions[i].qp_num)) return true;
  }
  return false;
}

/// Judges what came from a queue of which nothing is held back. Apart, so that a poll of which
/// nobody has to know that it was here needs no more registers than that.
[[gnu::noinline]] int judge(const ibv_cq* cq, ibv_wc* completions, int count) {
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  // One that should be held back has come through a queue that the shim has not seen made.
  const auto keep = [](const ibv_wc&, const CompletionVerdict& verdict) {
    if (verdict.fault != nullptr) verdict.fault->passedUnseen();
    return false;
  };
  return sift(shim, cq->context, completions, count, TimePoint{}, cq, keep);
}

/// The first `got` of `most` are there, and one of them at least is to be judged. Goes on while
/// there are more, as a caller who gets fewer than it asked for takes it that the queue is empty.
[[gnu::noinline]] int judgeAll(decltype(ContextOps::pollCq) real, ibv_cq* cq, int most,
                               ibv_wc* completions, int got) {
  int count = judge(cq, completions, got);
  for (int asked = most; got == asked && count < most;) {
    asked = most - count;
    ibv_wc* const those = completions + count;
    got = real(cq, asked, those);
    if (got < 0) return count > 0 ? count : got;
    count += anyConcerned(cq->context, those, got) ? judge(cq, those, got) : got;
  }
  return count;
}

/// A completion queue of which nothing is held back. What no fault is about is handed on as it is.
int pollAll(decltype(ContextOps::pollCq) real, ibv_cq* cq, int most, ibv_wc* completions) {
  const int got = real(cq, most, completions);
  if (!anyConcerned(cq->context, completions, got)) return got;
  return judgeAll(real, cq, most, completions, got);
}

/// One look at a queue of which some may be held back.
int pollHolding(Shim& shim, decltype(ContextOps::pollCq) real, CompletionQueue& queue, int most,
                ibv_wc* completions, TimePoint& next_due) {
  HeldQueue<HeldCompletion>& held = *queue.held.load(std::memory_order_acquire);
  const TimePoint at = now();
  const bool asked_anew = queue.askedAnew.load() && queue.askedAnew.exchange(false);
  bool emptied = false;
  if (queue.release.exchange(false)) held.releaseAll();
  int count = 0;
  held.take(at, static_cast<std::size_t>(most), [&](const auto& entry) {
    queue.goes(entry);
    completions[count++] = entry.item.completion;
    if (entry.item.fault != nullptr) {
      entry.item.fault->happened();
      entry.item.fault->released(entry.item.bytes, at - entry.since);
    }
    if (entry.item.rewrote != nullptr) entry.item.rewrote->happened();
  });
  const auto hold = [&](const ibv_wc& completion, const CompletionVerdict& verdict) {
    const bool late = verdict.due && *verdict.due > at;
    if (!late && !held.holds(completion.qp_num)) {
      // A slower link would not have been noticed; what passes counts for the rate all the same.
      if (verdict.fault != nullptr) {
        verdict.fault->held();
        verdict.fault->released(verdict.bytes, Duration(1));
      }
      return false;
    }
    held.push({completion, verdict.fault, verdict.bytes, verdict.rewrote}, completion.qp_num, at,
              verdict.due.value_or(at));
    if (verdict.fault != nullptr) verdict.fault->held();
    return true;
  };
  while (count < most) {
    const auto room = static_cast<int>(held.room());
    const int asked = std::min({most - count, kChunk, room});
    if (asked == 0) break;
    const int got = real(queue.cq, asked, completions + count);
    if (got < 0 && count == 0) {
      queue.publish();
      return got;
    }
    if (got > 0) {
      count += sift(shim, queue.cq->context, completions + count, got, at, nullptr, hold);
    }
    if (got < asked) {
      emptied = true;
      break;
    }
  }
  if (asked_anew) {
    emptied ? queue.nowEventless(at) : queue.askedAnew.store(true);
  }
  queue.publish();
  next_due = held.empty() ? TimePoint{} : held.nextDue();
  return count;
}

void napUntil(TimePoint due) {
  const Duration left = std::clamp<Duration>(due - now(), Duration(1), kNap);
  const timespec time{0, static_cast<long>(left.count())};
  ::nanosleep(&time, nullptr);
}

/// A queue of which completions may be held back.
[[gnu::noinline]] int pollThatMayHold(decltype(ContextOps::pollCq) real, ibv_cq* cq, int most,
                                      ibv_wc* completions) {
  Shim& shim = Shim::instance();
  while (true) {
    TimePoint next_due{};
    int count = 0;
    bool sleeps = false;
    {
      const Readers::Guard guard(shim.readers());
      CompletionQueue* const queue = shim.find(cq);
      if (queue == nullptr || queue->held.load(std::memory_order_acquire) == nullptr) {
        return pollAll(real, cq, most, completions);
      }
      // Somebody else is looking: there is nothing to be had before they are ready.
      if (!queue->flag.try_lock()) return 0;
      const std::lock_guard lock(queue->flag, std::adopt_lock);
      count = pollHolding(shim, real, *queue, most, completions, next_due);
      const bool owed = queue->eventless > 0 || (queue->askedAnew.load() && count == 0);
      sleeps = owed && queue->asked.load() > 0 && !queue->sleepsInCall.load();
    }
    if (count != 0 || !sleeps || next_due == TimePoint{}) return count;
    // It may be about to sleep on the channel's descriptor until something comes that has come
    // already, and gives no event. Nobody can wake it there, so that it sleeps here.
    napUntil(next_due);
  }
}

}  // namespace

int armedPollCq(decltype(ContextOps::pollCq) real, ibv_cq* cq, int most, ibv_wc* completions) {
  if (!g_concerned.has(cq)) return real(cq, most, completions);
  return g_concerned.mayHold(cq) ? pollThatMayHold(real, cq, most, completions)
                                 : pollAll(real, cq, most, completions);
}

void armedExtendedPoll(ibv_cq_ex* cq) {
  if (!g_concerned.has(ibv_cq_ex_to_cq(cq))) return;
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  FaultBits bits =
      ~FaultBits{0};  // where the queue was made without that, nobody knows whose it is
  if (cq->read_qp_num != nullptr) bits = faultsOf(shim.find(cq->context, ibv_wc_read_qp_num(cq)));
  forEachFault(shim, bits, [](std::size_t, ArmedFault& fault) {
    const Effect effect = fault.rule().effect;
    if (effect != Effect::kPostError && effect != Effect::kQpError) fault.passedUnseen();
  });
}

}  // namespace faultline::injector::verbs::shim
