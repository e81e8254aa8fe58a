#pragma once

#include <vector>

#include "harness/site/machine_check.h"

namespace faultline::netns {

/// What clusters of namespaces need of this machine, tried for real (probe.h).
std::vector<site::MachineCheck> checkMachine();

}  // namespace faultline::netns
