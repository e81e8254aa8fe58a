#pragma once

#include <string>

#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// Why this expectation can never hold, or always does, in this scenario (of which everything but
/// `expect` is read), and what to write instead; empty: it means something. Pure.
std::string whyMeaningless(const Expectation& expectation, const Scenario& scenario);

}  // namespace faultline::scenario
