#pragma once

#include <infiniband/verbs.h>

namespace faultline::injector::verbs::shim {

/// In the place of the provider's functions of `verbs_context`, which ibv_create_qp_ex() and
/// ibv_create_cq_ex() call without passing through the library.
ibv_qp* createExtended(ibv_context* context, ibv_qp_init_attr_ex* attributes);
ibv_cq_ex* createExtended(ibv_context* context, ibv_cq_init_attr_ex* attributes);

}  // namespace faultline::injector::verbs::shim
