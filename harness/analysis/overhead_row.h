#pragma once

#include <optional>

#include "harness/stats/overhead.h"
#include "reports/result.h"

namespace faultline::run {

/// What the overheads of blocks come to in the report, with an interval where there are enough of
/// them, held against the noise of equal runs where that is known. nullopt without a block.
std::optional<reports::Overhead> overheadRow(const stats::Overhead& overhead,
                                             const std::optional<stats::NoiseBand>& band);

}  // namespace faultline::run
