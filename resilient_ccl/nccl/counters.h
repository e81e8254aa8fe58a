#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "resilient_ccl/nccl/device.h"
#include "resilient_ccl/nccl/pair.h"

namespace faultline::nccl {

/// FAULTLINE_COUNTERS or FAULTLINE_TRACE with %h and %p filled in.
std::string filePath(const std::string& pattern);

/// Whether a file of that path can be made, or is there and can be written; an empty path is of no
/// file. kInvalidArgument names the variable and what is wrong: better now than at the end of a job
/// of days.
Status checkFile(const char* variable, const std::string& path);

/// What this process has done.
struct Counters {
  std::string options;  ///< Options::describe
  int ioThreads = 0;
  std::vector<Device> devices;
  std::vector<Pair::Account> peers;
  std::uint64_t peersDropped = 0;  ///< earlier ones for which there was no room
};

/// As docs/nccl.md says ("Counters").
std::string countersJson(const Counters& counters);

}  // namespace faultline::nccl
