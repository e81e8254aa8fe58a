#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "harness/cli/inject_target.h"

namespace faultline::cli {

/// Completes `injection`, whose kind is of RDMA devices and whose target is read, with a fault of
/// the device that the target names: dev, and port and other_end if given.
Status addRdmaFault(const std::map<std::string, std::string>& parameters, Injection& injection);

}  // namespace faultline::cli
