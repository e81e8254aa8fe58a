#include "injector/verbs/shim/create_extended.h"

#include <algorithm>

#include "injector/verbs/shim/real_library.h"
#include "injector/verbs/shim/shim.h"

namespace faultline::injector::verbs::shim {
namespace {

constinit Real<ibv_qp_ex*(ibv_qp*)> g_to_extended("ibv_qp_to_qp_ex", "IBVERBS_1.6");

}  // namespace

ibv_qp* createExtended(decltype(CreateOps::queuePair) real, ibv_context* context,
                       ibv_qp_init_attr_ex* attributes) {
  Shim& shim = Shim::instance();
  ibv_qp* const qp = real(context, attributes);
  if (qp == nullptr) return nullptr;
  const bool batches = (attributes->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  auto* const to_extended = g_to_extended.get();
  ibv_qp_ex* const extended = batches && to_extended != nullptr ? to_extended(qp) : nullptr;
  if (batches && (extended == nullptr || !shim.takeOver(*extended))) shim.missedQueuePair();
  shim.created(*qp, {attributes->sq_sig_all != 0, std::max(attributes->cap.max_send_wr, 1U)});
  return qp;
}

ibv_cq_ex* createExtended(decltype(CreateOps::completionQueue) real, ibv_context* context,
                          ibv_cq_init_attr_ex* attributes) {
  Shim& shim = Shim::instance();
  ibv_cq_ex* const cq = real(context, attributes);
  if (cq == nullptr) return nullptr;
  shim.takeOver(*cq);
  shim.created(*ibv_cq_ex_to_cq(cq));
  return cq;
}

}  // namespace faultline::injector::verbs::shim
