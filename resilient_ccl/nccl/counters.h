#pragma once

#include <string>
#include <vector>

#include "resilient_ccl/nccl/device.h"
#include "resilient_ccl/nccl/options.h"
#include "resilient_ccl/nccl/pair.h"

namespace faultline::nccl {

/// FAULTLINE_COUNTERS or FAULTLINE_TRACE with %h and %p filled in.
std::string filePath(const std::string& pattern);

/// What this process has done, as docs/nccl.md says.
std::string countersJson(const Options& options, const std::vector<Device>& devices,
                         const std::vector<Pair::Account>& accounts);

}  // namespace faultline::nccl
