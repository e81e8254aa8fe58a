#pragma once

#include <string>

#include "base/status.h"

namespace faultline::launch {

/// The program that `name` means, as a shell would find it in `path` (folders with colons between):
/// kNotFound, or kPermissionDenied when it cannot be executed.
Result<std::string> findExecutable(const std::string& name, const std::string& workingDirectory,
                                   const std::string& path);

/// A library of ours that other programs load, beside the program that runs: in `folder` of a
/// build, or where libraries were installed. Empty when it is not there.
std::string findOwnLibrary(const std::string& file, const std::string& folder);
/// The same, where the program itself is in `programs`.
std::string findOwnLibrary(const std::string& file, const std::string& folder,
                           const std::string& programs);

}  // namespace faultline::launch
