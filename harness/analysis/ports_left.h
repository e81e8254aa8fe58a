#pragma once

#include <optional>
#include <span>

#include "harness/analysis/speed_bound.h"
#include "harness/scenario/scenario.h"
#include "resilient_ccl/schedule/bound.h"

namespace faultline::run {

/// What of the nodes' ports is left from one moment to another, on the clock of the run, 1 =
/// everything; nullopt when it changed meanwhile, or nothing is left of a node. Pure.
std::optional<schedule::PortBandwidths> portsLeft(double from_ms, double to_ms,
                                                  std::span<const PortLoss> losses,
                                                  const scenario::Cluster& cluster);

}  // namespace faultline::run
