#pragma once

#include <string>
#include <vector>

#include "harness/site/machine_check.h"

/// What this machine can do: the rows of `faultline doctor`.
namespace faultline::cli {

using site::MachineCheck;

/// Looks at everything; each kind of cluster at what it needs. Mechanisms of clusters are tried for
/// real in a process of their own, which takes them away with it: nothing is left behind. Call it
/// while the process has one thread.
std::vector<MachineCheck> checkMachine();

/// All that the quick start needs is there. Pure.
bool canRunQuickstart(const std::vector<MachineCheck>& checks);

}  // namespace faultline::cli
