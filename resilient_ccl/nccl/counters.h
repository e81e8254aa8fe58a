#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "resilient_ccl/nccl/accounts.h"
#include "resilient_ccl/nccl/device.h"
#include "resilient_ccl/nccl/options.h"

namespace faultline::nccl {

/// FAULTLINE_COUNTERS or FAULTLINE_TRACE with %h and %p filled in.
std::string filePath(const std::string& pattern);

/// Whether a file of that path can be made, or is there and can be written; an empty path is of no
/// file. kInvalidArgument names the variable and what is wrong: better now than at the end of a job
/// of days.
Status checkFile(const char* variable, const std::string& path);
/// The same of both files of a process.
Status checkFiles(const Options& options);

/// What this process has done.
struct Counters {
  std::string options;  ///< Options::describe
  int ioThreads = 0;
  std::vector<Device> devices;
  Accounts accounts;
};

/// As docs/nccl.md says ("Counters").
std::string countersJson(const Counters& counters);

}  // namespace faultline::nccl
