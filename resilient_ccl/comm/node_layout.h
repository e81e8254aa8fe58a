#pragma once

#include <span>
#include <string>

namespace faultline::comm {

/// How many ranks share a node when they are spread evenly and in order, as schedules need it:
/// ranks 0..n-1 on one node, the next n on another, and so on. `hosts`: where each rank is
/// (fabric::ProcessAddress::host); an empty one is a node of its own. 1 when they lie otherwise.
int ranksPerNode(std::span<const std::string> hosts);

}  // namespace faultline::comm
