#pragma once

#include <string>

#include "base/status.h"

namespace faultline::launch {

/// The program that `name` means, as a shell would find it in `path` (folders with colons between):
/// kNotFound, or kPermissionDenied when it cannot be executed.
Result<std::string> findExecutable(const std::string& name, const std::string& workingDirectory,
                                   const std::string& path);

}  // namespace faultline::launch
