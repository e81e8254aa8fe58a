#pragma once

#include <infiniband/verbs.h>

#include "injector/verbs/shim/provider_ops.h"

namespace faultline::injector::verbs::shim {

/// Makes it by the provider's own function `real`, whatever context that is called with, and
/// watches it.
ibv_qp* createExtended(decltype(CreateOps::queuePair) real, ibv_context* context,
                       ibv_qp_init_attr_ex* attributes);
ibv_cq_ex* createExtended(decltype(CreateOps::completionQueue) real, ibv_context* context,
                          ibv_cq_init_attr_ex* attributes);

}  // namespace faultline::injector::verbs::shim
