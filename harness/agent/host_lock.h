#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::agent {

/// Holds a name on the network namespace of the calling thread, until the descriptor is closed or
/// its process dies: nothing is left behind. kAlreadyExists, with the process that holds it, where
/// somebody still does after `budget`.
Result<UniqueFd> holdHost(const std::string& name, Duration budget);

}  // namespace faultline::agent
