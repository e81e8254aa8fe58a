#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace faultline::fabric {

/// How far the NICs of this machine are from each other, [a][b] for devices[a] and devices[b]:
/// ports below one PCIe switch are nearer than those that only a host bridge joins, those of one
/// NUMA node nearer than those of two; within each of these by the objects between them. Only the
/// order means something. Takes milliseconds: for set-up.
///
/// kUnavailable, with the reason, when it cannot be known: the program was built without hwloc, or
/// a device is not on PCIe (as the virtual ones of a network namespace).
Result<std::vector<std::vector<int>>> nicDistances(const std::vector<std::string>& devices);

/// The same in a topology described by hwloc's XML, instead of this machine's.
Result<std::vector<std::vector<int>>> nicDistancesIn(const std::string& xml,
                                                     const std::vector<std::string>& devices);

}  // namespace faultline::fabric
