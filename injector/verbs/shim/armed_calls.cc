#include "injector/verbs/shim/armed_calls.h"

#include <time.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <optional>
#include <utility>

#include "injector/verbs/shim/shim.h"

namespace faultline::injector::verbs::shim {
namespace {

/// How long one look is put off while a program that waits for events is made to wait.
constexpr Duration kNap = 1ms;
/// Completions that are asked for at once while some are held back.
constexpr int kChunk = 16;

template <typename Request>
std::uint64_t bytesOf(const Request& request) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < request.num_sge; ++i) bytes += request.sg_list[i].length;
  return bytes;
}

/// Calls `visit(slot, fault)` for each of the bits.
template <typename Visit>
void forEachFault(const Shim& shim, FaultBits bits, Visit visit) {
  for (; bits != 0; bits &= bits - 1) {
    const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
    if (ArmedFault* const fault = shim.fault(slot)) visit(slot, *fault);
  }
}

/// What is to become of one work request.
struct PostVerdict {
  int error = 0;
  ArmedFault* fault = nullptr;  ///< whose error it is
};

PostVerdict onPost(Shim& shim, QueuePair& queue_pair, FaultBits bits, Side side,
                   std::uint64_t bytes) {
  PostVerdict verdict;
  forEachFault(shim, bits, [&](std::size_t slot, ArmedFault& fault) {
    const Rule& rule = fault.rule();
    if (!includes(rule.side, side)) return;
    switch (rule.effect) {
      case Effect::kQpError:
        if (!rule.trigger.now() && !queue_pair.hasMet(slot) && fault.strikes(bytes)) {
          shim.doom(queue_pair, slot);
        }
        break;
      case Effect::kPostError:
        if (fault.strikes(bytes) && verdict.error == 0) verdict = {rule.error, &fault};
        break;
      case Effect::kQpRate:
        if (side == Side::kSend) fault.moved(bytes);
        break;
      case Effect::kCompletionRewrite:
      case Effect::kCompletionLoss:
      case Effect::kQpDelay:
        // Their operations are completions; those of receives tell their bytes themselves.
        if (side == Side::kSend) fault.moved(bytes);
        break;
    }
  });
  return verdict;
}

/// Calls `visit(fault)` for each of the bits that paces what is sent.
template <typename Visit>
void forEachSendRate(const Shim& shim, FaultBits bits, Visit visit) {
  forEachFault(shim, bits, [&](std::size_t, ArmedFault& fault) {
    const Rule& rule = fault.rule();
    if (rule.effect == Effect::kQpRate && includes(rule.side, Side::kSend)) visit(fault);
  });
}

/// Notes what a paced queue pair sends. Before it is posted: another thread may poll its completion
/// before the call returns.
NotedSends logSend(const Shim& shim, QueuePair& queue_pair, FaultBits bits,
                   std::uint64_t work_request, bool signalled, std::uint64_t bytes) {
  SendLog* const log = queue_pair.log.load(std::memory_order_acquire);
  if (log == nullptr) return {};
  std::optional<TimePoint> due;
  forEachSendRate(shim, bits, [&](ArmedFault& fault) {
    due = std::max(due.value_or(TimePoint::min()), fault.carried(now(), bytes));
  });
  if (!due) return {};
  const std::lock_guard lock(queue_pair.log_flag);
  if (signalled) {
    log->add(work_request, bytes, *due);
  } else {
    log->addUnsignalled(bytes);
  }
  return {signalled ? std::size_t{1} : 0, bytes};
}

/// The latest sends were not taken: neither their completions nor the link wait for them. `bits`
/// are those under which they were noted.
void takeBackSends(const Shim& shim, QueuePair& queue_pair, FaultBits bits, NotedSends noted) {
  SendLog* const log = queue_pair.log.load(std::memory_order_acquire);
  if (log == nullptr) return;
  bool paced = false;
  forEachSendRate(shim, bits, [&](ArmedFault& fault) {
    fault.notCarried(noted.bytes);
    paced = true;
  });
  if (!paced) return;
  const std::lock_guard lock(queue_pair.log_flag);
  log->takeBack(noted.entries, noted.bytes);
}

/// A chain of requests, posted up to the first that is refused. `note(request)` is told of each
/// before it is posted and `unnote(first, end)` of those that the provider did not take.
template <typename Request, typename Post, typename Judge, typename Note, typename Unnote>
int postChain(Post real, ibv_qp* qp, Request* first, Request** bad, Judge judge, Note note,
              Unnote unnote) {
  Request* before = nullptr;
  Request* refused = nullptr;
  PostVerdict verdict;
  for (Request* at = first; at != nullptr; before = at, at = at->next) {
    verdict = judge(*at);
    if (verdict.error != 0) {
      refused = at;
      break;
    }
    note(*at);
  }
  int result = 0;
  if (refused != first || first == nullptr) {
    // Cut off for the length of the call: the chain is the caller's, and this thread has it.
    if (refused != nullptr) before->next = nullptr;
    Request* failed = nullptr;
    result = real(qp, first, &failed);
    if (refused != nullptr) before->next = refused;
    if (result != 0) {
      unnote(failed == nullptr ? first : failed, refused);
      if (bad != nullptr) *bad = failed;
      return result;
    }
  }
  if (refused == nullptr) return result;
  verdict.fault->happened();
  if (bad != nullptr) *bad = refused;
  return verdict.error;
}

/// What is to become of one completion.
struct CompletionVerdict {
  bool lost = false;
  std::optional<TimePoint> due;  ///< held back until then
  ArmedFault* fault = nullptr;   ///< whose doing that is
  std::uint64_t bytes = 0;       ///< for which a held one stands
};

CompletionVerdict onCompletion(Shim& shim, QueuePair& queue_pair, FaultBits bits,
                               ibv_wc& completion, TimePoint now) {
  CompletionVerdict verdict;
  if (completion.status != IBV_WC_SUCCESS) {  // and so the opcode is undefined
    forEachFault(shim, bits, [&](std::size_t, ArmedFault& fault) {
      fault.sawError(completion.status == IBV_WC_WR_FLUSH_ERR);
    });
    return verdict;
  }
  const bool received = (completion.opcode & IBV_WC_RECV) != 0;
  const Side side = received ? Side::kRecv : Side::kSend;
  const std::uint64_t bytes = received ? completion.byte_len : 0;
  const auto hold = [&](TimePoint due, ArmedFault& fault, std::uint64_t of) {
    if (verdict.due && *verdict.due >= due) return;
    verdict = {verdict.lost, due, &fault, of};
  };
  std::optional<SendLog::Entry> sent;
  if (SendLog* const log = queue_pair.log.load(std::memory_order_acquire); log && !received) {
    const std::lock_guard lock(queue_pair.log_flag);
    sent = log->complete(completion.wr_id);
  }
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
          fault.happened();
        }
        break;
      case Effect::kQpDelay:
        if (fault.strikes(bytes)) hold(now + rule.delay, fault, bytes);
        break;
      case Effect::kQpRate:
        if (received) {
          fault.moved(bytes);
          hold(fault.carried(now, bytes), fault, bytes);
        } else if (sent) {
          hold(sent->due, fault, sent->bytes);
        }
        break;
    }
  });
  return verdict;
}

/// Judges those just polled: drops what is lost, and hands what is to wait to `hold`. Returns how
/// many are left, at the front.
template <typename Hold>
int sift(Shim& shim, const ibv_context* context, ibv_wc* completions, int count, TimePoint now,
         Hold hold) {
  int left = 0;
  for (int i = 0; i < count; ++i) {
    ibv_wc& completion = completions[i];
    QueuePair* const queue_pair = shim.find(context, completion.qp_num);
    const FaultBits bits =
        queue_pair == nullptr ? 0 : queue_pair->faults.load(std::memory_order_acquire);
    CompletionVerdict verdict;
    if (bits != 0) verdict = onCompletion(shim, *queue_pair, bits, completion, now);
    if (verdict.lost || hold(completion, verdict)) continue;
    if (left != i) completions[left] = completion;
    ++left;
  }
  return left;
}

/// A completion queue of which nothing is held back. Goes on while there are more, as a caller who
/// gets fewer than it asked for takes it that the queue is empty.
int pollAll(Shim& shim, decltype(ContextOps::pollCq) real, ibv_cq* cq, int most,
            ibv_wc* completions) {
  // One that should be held back has come through a queue that the shim has not seen made.
  const auto keep = [](const ibv_wc&, const CompletionVerdict& verdict) {
    if (verdict.fault != nullptr) verdict.fault->passedUnseen();
    return false;
  };
  int count = 0;
  while (count < most) {
    const int asked = most - count;
    const int got = real(cq, asked, completions + count);
    if (got < 0) return count > 0 ? count : got;
    count += sift(shim, cq->context, completions + count, got, TimePoint{}, keep);
    if (got < asked) break;
  }
  return count;
}

/// One look at a queue of which some may be held back.
int pollHolding(Shim& shim, decltype(ContextOps::pollCq) real, CompletionQueue& queue, int most,
                ibv_wc* completions, TimePoint& next_due) {
  HeldQueue<HeldCompletion>& held = *queue.held.load(std::memory_order_acquire);
  const TimePoint at = now();
  if (queue.release.exchange(false)) held.releaseAll();
  int count = 0;
  held.take(at, static_cast<std::size_t>(most), [&](const auto& entry) {
    completions[count++] = entry.item.completion;
    if (entry.item.fault != nullptr) {
      entry.item.fault->happened();
      entry.item.fault->released(entry.item.bytes, at - entry.since);
    }
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
    held.push({completion, verdict.fault, verdict.bytes}, completion.qp_num, at,
              verdict.due.value_or(at));
    if (verdict.fault != nullptr) verdict.fault->held();
    return true;
  };
  while (count < most) {
    const auto room = static_cast<int>(held.room());
    const int asked = std::min({most - count, kChunk, room});
    if (asked == 0) break;
    const int got = real(queue.cq, asked, completions + count);
    if (got < 0 && count == 0) return got;
    if (got > 0) count += sift(shim, queue.cq->context, completions + count, got, at, hold);
    if (got < asked) break;
  }
  queue.heldNow.store(held.size(), std::memory_order_release);
  next_due = held.empty() ? TimePoint{} : held.nextDue();
  return count;
}

void napUntil(TimePoint due) {
  const Duration left = std::clamp<Duration>(due - now(), Duration(1), kNap);
  const timespec time{0, static_cast<long>(left.count())};
  ::nanosleep(&time, nullptr);
}

}  // namespace

int armedPostSend(decltype(ContextOps::postSend) real, ibv_qp* qp, ibv_send_wr* first,
                  ibv_send_wr** bad) {
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  QueuePair* const queue_pair = shim.find(qp->context, qp->qp_num);
  const FaultBits bits =
      queue_pair == nullptr ? 0 : queue_pair->faults.load(std::memory_order_acquire);
  if (bits == 0) return real(qp, first, bad);
  const auto signalled = [&](const ibv_send_wr& request) {
    return queue_pair->made.signalAll || (request.send_flags & IBV_SEND_SIGNALED) != 0;
  };
  return postChain(
      real, qp, first, bad,
      [&](const ibv_send_wr& request) {
        return onPost(shim, *queue_pair, bits, Side::kSend, bytesOf(request));
      },
      [&](const ibv_send_wr& request) {
        logSend(shim, *queue_pair, bits, request.wr_id, signalled(request), bytesOf(request));
      },
      [&](const ibv_send_wr* from, const ibv_send_wr* end) {
        NotedSends noted;
        for (; from != nullptr && from != end; from = from->next) {
          noted.entries += signalled(*from);
          noted.bytes += bytesOf(*from);
        }
        takeBackSends(shim, *queue_pair, bits, noted);
      });
}

int armedPostRecv(decltype(ContextOps::postRecv) real, ibv_qp* qp, ibv_recv_wr* first,
                  ibv_recv_wr** bad) {
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  QueuePair* const queue_pair = shim.find(qp->context, qp->qp_num);
  const FaultBits bits =
      queue_pair == nullptr ? 0 : queue_pair->faults.load(std::memory_order_acquire);
  if (bits == 0) return real(qp, first, bad);
  return postChain(
      real, qp, first, bad,
      [&](const ibv_recv_wr& request) {
        return onPost(shim, *queue_pair, bits, Side::kRecv, bytesOf(request));
      },
      [](const ibv_recv_wr&) {}, [](const ibv_recv_wr*, const ibv_recv_wr*) {});
}

int armedPollCq(decltype(ContextOps::pollCq) real, ibv_cq* cq, int most, ibv_wc* completions) {
  Shim& shim = Shim::instance();
  while (true) {
    TimePoint next_due{};
    int count = 0;
    bool waits = false;
    {
      const Readers::Guard guard(shim.readers());
      CompletionQueue* const queue = shim.find(cq);
      if (queue == nullptr || queue->held.load(std::memory_order_acquire) == nullptr) {
        return pollAll(shim, real, cq, most, completions);
      }
      // Somebody else is looking: there is nothing to be had before they are ready.
      if (!queue->flag.try_lock()) return 0;
      const std::lock_guard lock(queue->flag, std::adopt_lock);
      count = pollHolding(shim, real, *queue, most, completions, next_due);
      waits = queue->waits;
    }
    if (count != 0 || !waits || next_due == TimePoint{}) return count;
    // It would wait for an event that has come already, so it is made to wait here.
    napUntil(next_due);
  }
}

void armedBatchStart(ibv_qp_ex* qp) {
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  QueuePair* const queue_pair = shim.find(qp->qp_base.context, qp->qp_base.qp_num);
  if (queue_pair != nullptr) queue_pair->batch = {shim.era()};
}

void armedBatchRequest(ibv_qp_ex* qp, std::uint64_t bytes) {
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  QueuePair* const queue_pair = shim.find(qp->qp_base.context, qp->qp_base.qp_num);
  const FaultBits bits =
      queue_pair == nullptr ? 0 : queue_pair->faults.load(std::memory_order_acquire);
  if (bits == 0) return;
  QueuePair::Batch& batch = queue_pair->batch;
  if (batch.era != shim.era()) batch = {shim.era()};
  const PostVerdict verdict = onPost(shim, *queue_pair, bits, Side::kSend, bytes);
  if (verdict.error != 0 && batch.error == 0) {
    batch.error = verdict.error;
    batch.fault = verdict.fault;
  }
  const bool signalled = queue_pair->made.signalAll || (qp->wr_flags & IBV_SEND_SIGNALED) != 0;
  const NotedSends noted = logSend(shim, *queue_pair, bits, qp->wr_id, signalled, bytes);
  batch.noted.entries += noted.entries;
  batch.noted.bytes += noted.bytes;
  batch.noted_under |= bits;
}

int armedBatchComplete(const BatchOps& real, ibv_qp_ex* qp) {
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  QueuePair* const queue_pair = shim.find(qp->qp_base.context, qp->qp_base.qp_num);
  const bool known = queue_pair != nullptr && queue_pair->batch.era == shim.era();
  if (!known) return real.complete(qp);
  const QueuePair::Batch batch = std::exchange(queue_pair->batch, {});
  if (batch.error != 0 && real.abort != nullptr) {
    real.abort(qp);
    takeBackSends(shim, *queue_pair, batch.noted_under, batch.noted);
    batch.fault->happened();
    return batch.error;
  }
  const int result = real.complete(qp);
  if (result != 0) takeBackSends(shim, *queue_pair, batch.noted_under, batch.noted);
  return result;
}

void armedBatchAbort(ibv_qp_ex* qp) {
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  QueuePair* const queue_pair = shim.find(qp->qp_base.context, qp->qp_base.qp_num);
  if (queue_pair == nullptr || queue_pair->batch.era != shim.era()) return;
  const QueuePair::Batch batch = std::exchange(queue_pair->batch, {});
  takeBackSends(shim, *queue_pair, batch.noted_under, batch.noted);
}

void armedExtendedPoll(ibv_cq_ex* /*cq*/) {
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  forEachFault(shim, ~FaultBits{0}, [](std::size_t, ArmedFault& fault) {
    if (fault.rule().effect != Effect::kPostError) fault.passedUnseen();
  });
}

}  // namespace faultline::injector::verbs::shim
