// Posting, one by one and in batches.
#include <mutex>
#include <utility>

#include "injector/verbs/shim/armed_calls.h"
#include "injector/verbs/shim/fault_bits.h"
#include "injector/verbs/shim/shim.h"

namespace faultline::injector::verbs::shim {
namespace {

template <typename Request>
std::uint64_t bytesOf(const Request& request) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < request.num_sge; ++i) bytes += request.sg_list[i].length;
  return bytes;
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
        if (!fault.strikes(bytes)) break;
        if (verdict.error == 0) {
          verdict = {rule.error, &fault};
        } else {
          fault.struckNothing();  // it fails with another one's error
        }
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

/// Whether one of the bits paces what this one sends, so that it is to be noted.
bool isPaced(const Shim& shim, const QueuePair& queue_pair, FaultBits bits) {
  bool paced = false;
  if (queue_pair.log.load(std::memory_order_acquire) == nullptr) return paced;
  forEachFault(shim, bits, [&](std::size_t, const ArmedFault& fault) {
    paced = paced || fault.rule().pacesSends();
  });
  return paced;
}

/// Notes what a paced queue pair sends. Before it is posted: another thread may poll its completion
/// before the call returns.
void logSend(QueuePair& queue_pair, const SendLog::Entry& entry) {
  const std::lock_guard lock(queue_pair.log_flag);
  queue_pair.log.load(std::memory_order_acquire)->add(entry);
}

/// So many of the latest sends that were noted were not taken.
void takeBackSends(QueuePair& queue_pair, std::size_t noted) {
  if (noted == 0) return;
  const std::lock_guard lock(queue_pair.log_flag);
  queue_pair.log.load(std::memory_order_acquire)->takeBack(noted);
}

/// The provider has refused to post: no fault's doing, and counted by each that concerns the queue
/// pair.
[[gnu::cold]] void countRefusal(const Shim& shim, FaultBits bits, int error) {
  forEachFault(shim, bits, [&](std::size_t, ArmedFault& fault) { fault.postFailed(error); });
}

template <typename Request>
bool isOne(const Request* first) {
  return first != nullptr && first->next == nullptr;
}

/// A chain of one, as most are, of which nothing is noted: what a chain needs besides took a third
/// of the time. `refused(error)` is told when the provider does not take it.
template <typename Request, typename Post, typename Refused>
int postOne(Post real, ibv_qp* qp, Request* only, Request** bad, const PostVerdict& verdict,
            Refused refused) {
  if (verdict.error == 0) {
    const int result = real(qp, only, bad);
    if (result != 0) refused(result);
    return result;
  }
  verdict.fault->happened();
  if (bad != nullptr) *bad = only;
  return verdict.error;
}

/// A chain of requests, posted up to the first that is refused. `note(request)` is told of each
/// before it is posted and `refused(error, first, end)` of those that the provider did not take.
template <typename Request, typename Post, typename Judge, typename Note, typename Refused>
int postChain(Post real, ibv_qp* qp, Request* first, Request** bad, Judge judge, Note note,
              Refused refused) {
  Request* before = nullptr;
  Request* struck = nullptr;
  PostVerdict verdict;
  for (Request* at = first; at != nullptr; before = at, at = at->next) {
    verdict = judge(*at);
    if (verdict.error != 0) {
      struck = at;
      break;
    }
    note(*at);
  }
  int result = 0;
  if (struck != first || first == nullptr) {
    // Cut off for the length of the call: the chain is the caller's, and this thread has it.
    if (struck != nullptr) before->next = nullptr;
    Request* failed = nullptr;
    result = real(qp, first, &failed);
    if (struck != nullptr) before->next = struck;
    if (result != 0) {
      refused(result, failed == nullptr ? first : failed, struck);
      if (struck != nullptr) verdict.fault->struckNothing();
      if (bad != nullptr) *bad = failed;
      return result;
    }
  }
  if (struck == nullptr) return result;
  verdict.fault->happened();
  if (bad != nullptr) *bad = struck;
  return verdict.error;
}

// Apart, so that a post that no fault is about needs no more registers than to see that.
[[gnu::noinline]] int postConcernedSend(decltype(ContextOps::postSend) real, ibv_qp* qp,
                                        ibv_send_wr* first, ibv_send_wr** bad) {
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  QueuePair* const queue_pair = shim.find(qp->context, qp->qp_num);
  const FaultBits bits = faultsOf(queue_pair);
  if (bits == 0) return real(qp, first, bad);
  if (isOne(first) && queue_pair->log.load(std::memory_order_acquire) == nullptr) {
    return postOne(real, qp, first, bad,
                   onPost(shim, *queue_pair, bits, Side::kSend, bytesOf(*first)),
                   [&](int error) { countRefusal(shim, bits, error); });
  }
  const bool paced = isPaced(shim, *queue_pair, bits);
  return postChain(
      real, qp, first, bad,
      [&](const ibv_send_wr& request) {
        return onPost(shim, *queue_pair, bits, Side::kSend, bytesOf(request));
      },
      [&](const ibv_send_wr& request) {
        if (!paced) return;
        const bool signalled =
            queue_pair->made.signalAll || (request.send_flags & IBV_SEND_SIGNALED) != 0;
        logSend(*queue_pair, {request.wr_id, bytesOf(request), now(), signalled});
      },
      [&](int error, const ibv_send_wr* from, const ibv_send_wr* end) {
        countRefusal(shim, bits, error);
        std::size_t noted = 0;
        for (; paced && from != nullptr && from != end; from = from->next) ++noted;
        takeBackSends(*queue_pair, noted);
      });
}

[[gnu::noinline]] int postConcernedRecv(decltype(ContextOps::postRecv) real, ibv_qp* qp,
                                        ibv_recv_wr* first, ibv_recv_wr** bad) {
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  QueuePair* const queue_pair = shim.find(qp->context, qp->qp_num);
  const FaultBits bits = faultsOf(queue_pair);
  if (bits == 0) return real(qp, first, bad);
  if (isOne(first)) {
    return postOne(real, qp, first, bad,
                   onPost(shim, *queue_pair, bits, Side::kRecv, bytesOf(*first)),
                   [&](int error) { countRefusal(shim, bits, error); });
  }
  return postChain(
      real, qp, first, bad,
      [&](const ibv_recv_wr& request) {
        return onPost(shim, *queue_pair, bits, Side::kRecv, bytesOf(request));
      },
      [](const ibv_recv_wr&) {},
      [&](int error, const ibv_recv_wr*, const ibv_recv_wr*) { countRefusal(shim, bits, error); });
}

}  // namespace

int armedPostSend(decltype(ContextOps::postSend) real, ibv_qp* qp, ibv_send_wr* first,
                  ibv_send_wr** bad) {
  return g_concerned.has(qp) ? postConcernedSend(real, qp, first, bad) : real(qp, first, bad);
}

int armedPostRecv(decltype(ContextOps::postRecv) real, ibv_qp* qp, ibv_recv_wr* first,
                  ibv_recv_wr** bad) {
  return g_concerned.has(qp) ? postConcernedRecv(real, qp, first, bad) : real(qp, first, bad);
}

void armedBatchStart(ibv_qp_ex* qp) {
  if (!g_concerned.has(&qp->qp_base)) return;
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  QueuePair* const queue_pair = shim.find(qp->qp_base.context, qp->qp_base.qp_num);
  if (queue_pair != nullptr) queue_pair->batch = {shim.era()};
}

void armedBatchRequest(ibv_qp_ex* qp, std::uint64_t bytes) {
  if (!g_concerned.has(&qp->qp_base)) return;
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  QueuePair* const queue_pair = shim.find(qp->qp_base.context, qp->qp_base.qp_num);
  const FaultBits bits = faultsOf(queue_pair);
  if (bits == 0) return;
  QueuePair::Batch& batch = queue_pair->batch;
  if (batch.era != shim.era()) batch = {shim.era()};
  const PostVerdict verdict = onPost(shim, *queue_pair, bits, Side::kSend, bytes);
  if (verdict.error != 0 && batch.error == 0) {
    batch.error = verdict.error;
    batch.fault = verdict.fault;
  } else if (verdict.error != 0) {
    verdict.fault->struckNothing();  // the batch fails once
  }
  if (!isPaced(shim, *queue_pair, bits)) return;
  const bool signalled = queue_pair->made.signalAll || (qp->wr_flags & IBV_SEND_SIGNALED) != 0;
  logSend(*queue_pair, {qp->wr_id, bytes, now(), signalled});
  ++batch.noted;
}

int armedBatchComplete(const BatchOps& real, ibv_qp_ex* qp) {
  if (!g_concerned.has(&qp->qp_base)) return real.complete(qp);
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  QueuePair* const queue_pair = shim.find(qp->qp_base.context, qp->qp_base.qp_num);
  if (queue_pair == nullptr) return real.complete(qp);
  // Begun under other faults than now: nothing is known of it.
  const bool known = queue_pair->batch.era == shim.era();
  QueuePair::Batch batch = std::exchange(queue_pair->batch, {});
  if (!known) batch = {};
  if (batch.error != 0 && real.abort != nullptr) {
    takeBackSends(*queue_pair, batch.noted);
    real.abort(qp);  // lets the next thread in
    batch.fault->happened();
    return batch.error;
  }
  const int result = real.complete(qp);
  if (result != 0) {
    takeBackSends(*queue_pair, batch.noted);
    countRefusal(shim, faultsOf(queue_pair), result);
  }
  return result;
}

void armedBatchAbort(ibv_qp_ex* qp) {
  if (!g_concerned.has(&qp->qp_base)) return;
  Shim& shim = Shim::instance();
  const Readers::Guard guard(shim.readers());
  QueuePair* const queue_pair = shim.find(qp->qp_base.context, qp->qp_base.qp_num);
  if (queue_pair == nullptr || queue_pair->batch.era != shim.era()) return;
  const QueuePair::Batch batch = std::exchange(queue_pair->batch, {});
  takeBackSends(*queue_pair, batch.noted);
  if (batch.error != 0) batch.fault->struckNothing();
}

}  // namespace faultline::injector::verbs::shim
