#pragma once

#include <infiniband/verbs.h>

#include "injector/verbs/shim/provider_ops.h"

/// What happens on the program's calls while faults are armed; on those that none is about
/// (g_concerned), nothing. That is asked here, so that what a call does while nothing is armed
/// needs no registers for it.
namespace faultline::injector::verbs::shim {

int armedPostSend(decltype(ContextOps::postSend) real, ibv_qp* qp, ibv_send_wr* first,
                  ibv_send_wr** bad);
int armedPostRecv(decltype(ContextOps::postRecv) real, ibv_qp* qp, ibv_recv_wr* first,
                  ibv_recv_wr** bad);
int armedPollCq(decltype(ContextOps::pollCq) real, ibv_cq* cq, int most, ibv_wc* completions);

/// One request of a batch has got its data. The provider has not been called yet.
void armedBatchRequest(ibv_qp_ex* qp, std::uint64_t bytes);
/// After the provider's, which lets one thread in.
void armedBatchStart(ibv_qp_ex* qp);
/// Completes the batch, or refuses it as a whole.
int armedBatchComplete(const BatchOps& real, ibv_qp_ex* qp);
void armedBatchAbort(ibv_qp_ex* qp);

/// A poll has come to a completion, which nobody looks into.
void armedExtendedPoll(ibv_cq_ex* cq);

}  // namespace faultline::injector::verbs::shim
