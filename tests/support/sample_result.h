#pragma once

#include "reports/result.h"

namespace faultline::testing {

/// A made-up but plausible result of the quick start: fault_free, fail_stop and hot_repair in
/// three blocks of 60 iterations, rail 0 of node 1 down for 1.5 s from the middle of iteration 20.
/// The same for the same seed.
reports::ScenarioResult sampleResult(std::uint64_t seed = 7);

/// The sample with every name and message hostile: script ends, quotes, control characters, broken
/// UTF-8, very long words.
reports::ScenarioResult hostileResult();

/// The sample blown up to `blocks` blocks and `factor` times the iterations, bins and failovers.
reports::ScenarioResult hugeResult(int blocks, int factor);

/// The sample as that of a large sweep: seven operations in 25 sizes, each called five times, under
/// five strategies in `blocks` blocks. The others take twice the time of fault_free.
reports::ScenarioResult hugeSweepResult(int blocks);

}  // namespace faultline::testing
