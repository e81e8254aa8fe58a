#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "injector/verbs/rule.h"

namespace faultline::injector::verbs::shim {

std::string typeName(ibv_qp_type type);
std::string stateName(ibv_qp_state state);

/// Asks the real library what `mask` names (ibv_query_qp). False when it does not tell.
bool query(ibv_qp& qp, ibv_qp_attr& attributes, int mask, ibv_qp_init_attr& init);

/// What a successful ibv_modify_qp(), or a query, tells.
void update(QueuePairFacts& facts, const ibv_qp_attr& attributes, int mask);

}  // namespace faultline::injector::verbs::shim
