#pragma once

#include <string_view>
#include <vector>

#include "resilient_ccl/nccl/device.h"

namespace faultline::nccl {

/// What data passes on its way from one NIC of this node to another one, nearest first.
enum class NicPath {
  kCard,     ///< nothing: two ports of one card
  kSwitch,   ///< PCIe bridges below one host bridge that both are behind
  kRoot,     ///< the host bridge that both are behind
  kNuma,     ///< the processor: two host bridges of one NUMA node
  kSocket,   ///< the link between two NUMA nodes
  kUnknown,  ///< one of them is not on PCI, or its NUMA node is not told
};

/// "card", "switch", "root", "numa", "socket", "unknown".
std::string_view nameOf(NicPath path);

/// From the places that the kernel shows: `pciPath` and `numaNode`.
NicPath pathBetween(const Device& a, const Device& b);

/// For each rail all others in the order in which they take over its load: by path, on the same
/// path by the PCIe bridges between them, then from the next number on. What is not known is
/// farthest.
std::vector<std::vector<int>> partnersOf(const std::vector<Device>& devices);

}  // namespace faultline::nccl
