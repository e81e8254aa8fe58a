#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "injector/verbs/rule.h"

namespace faultline::injector::verbs::shim {

std::string typeName(ibv_qp_type type);
std::string stateName(ibv_qp_state state);

/// What a successful ibv_modify_qp(), or a query, tells.
void update(QueuePairFacts& facts, const ibv_qp_attr& attributes, int mask);

}  // namespace faultline::injector::verbs::shim
