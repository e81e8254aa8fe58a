#pragma once

#include "base/clock.h"
#include "base/status.h"
#include "injector/fault_kind.h"
#include "injector/verbs/rule.h"

namespace faultline::injector {

/// How long a fault in a program stays without a word from its controller.
inline constexpr Duration kVerbsLease = 2s;

/// What the shim is to be told; `parameters` are those of the kind of this effect.
/// kInvalidArgument when dgid is no address.
Result<verbs::Rule> verbsRule(verbs::Effect effect, const FaultParameters& parameters);

}  // namespace faultline::injector
