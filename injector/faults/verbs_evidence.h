#pragma once

#include <optional>
#include <span>

#include "injector/fault.h"
#include "injector/faults/rate_meter.h"
#include "injector/verbs/rule.h"

namespace faultline::injector {

/// What has happened in the programs, and whether that is the fault: an armed fault that nothing
/// ran into has not happened. `counters` are those of all programs together; `achieved` has, for
/// each program in which the fault was armed, the rate that was measured while completions were
/// held back, if there was one: the rule's rate is that of each. Pure.
Evidence judgeVerbs(const verbs::Rule& rule, const verbs::Counters& counters,
                    std::span<const std::optional<MeasuredRate>> achieved);

/// The counters of two programs together.
verbs::Counters sum(verbs::Counters one, const verbs::Counters& other);

}  // namespace faultline::injector
