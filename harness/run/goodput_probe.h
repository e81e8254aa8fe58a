#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/units.h"
#include "harness/cluster/netns_cluster.h"

namespace faultline::run {

inline constexpr std::string_view kGoodputProgram = "iperf3";

/// The path of a program in $PATH.
std::optional<std::string> findProgram(std::string_view name);

/// What TCP carries over rail 0 from node 1 to node 0, as iperf3's receiver sees it when its first
/// moments are over. nullopt where iperf3 is not installed or there is only one node; an error when
/// it did not come to a result.
Result<std::optional<BitsPerSecond>> measureGoodput(cluster::NetnsCluster& cluster);

/// Of what `iperf3 --server --json` has printed; kInvalidArgument when that has no result.
Result<BitsPerSecond> goodputOf(std::string_view report);

}  // namespace faultline::run
