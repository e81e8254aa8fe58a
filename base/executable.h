#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace faultline {

/// The program that `name` means, as a shell would find it in `path` (folders with colons between):
/// kNotFound, or kPermissionDenied when it cannot be executed.
Result<std::string> findExecutable(const std::string& name, const std::string& workingDirectory,
                                   const std::string& path);

/// The words of a command line, as a shell would split them: at blanks, but for those in quotes ('
/// or ") or behind a backslash. Nothing else is done with them: no variables, no patterns, no
/// pipes. kInvalidArgument when there is no word, or a quote is not closed.
Result<std::vector<std::string>> splitCommand(std::string_view line);

}  // namespace faultline
