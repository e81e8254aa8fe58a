#pragma once

#include "harness/scenario/scenario.h"

namespace faultline::run {

/// The target node of a fault; faults without a target watch node 0.
inline int nodeOf(const scenario::Fault& fault) { return fault.target ? fault.target->node : 0; }

}  // namespace faultline::run
