#pragma once

#include <optional>

#include "injector/fault.h"
#include "injector/faults/rate_meter.h"
#include "injector/verbs/rule.h"

namespace faultline::injector {

/// What has happened in the programs, and whether that is the fault: an armed fault that nothing
/// ran into has not happened. `counters` are those of all programs together, `achieved` the rate
/// that was measured while completions were held back. Pure.
Evidence judgeVerbs(const verbs::Rule& rule, const verbs::Counters& counters,
                    const std::optional<MeasuredRate>& achieved);

/// The counters of two programs together.
verbs::Counters sum(verbs::Counters one, const verbs::Counters& other);

}  // namespace faultline::injector
