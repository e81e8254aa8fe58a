#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace faultline::netns {

/// Something this machine can or cannot do.
struct Capability {
  std::string name;  ///< "privileges", "veth", "bridge port state", ...
  bool ok = false;
  std::string details;  ///< when missing: what happened and what can be done
  std::string cost;     ///< when missing: what is not possible without it
};

/// Tries every mechanism of a netns cluster for real, in a scratch namespace of a child process, so
/// that neither this process nor the machine is changed. Errors only when the trial itself cannot
/// be made. Call it while the process has one thread.
Result<std::vector<Capability>> probe();

}  // namespace faultline::netns
