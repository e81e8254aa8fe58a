#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// What equal runs differ by on this machine, from the pairs of fault_free and its second row; and
/// whether the machine was too noisy, or changed too much meanwhile, for any speed to mean anything
/// (stats/overhead.h). `runs` are in the order in which they were made. nullopt without a second
/// row or with fewer than stats::kMinPairsForBand pairs. Pure.
std::optional<reports::Noise> noiseOf(const scenario::Scenario& scenario,
                                      std::span<const reports::Run> runs, std::uint64_t seed);

/// Where there is a second row, and `noiseOf` has nothing to say: why, and what to do. Empty
/// otherwise.
std::string whyNoiseUnknown(const scenario::Scenario& scenario, std::span<const reports::Run> runs);

}  // namespace faultline::run
