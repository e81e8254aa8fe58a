#pragma once

#include <spdlog/spdlog.h>

#include <string>

#include "base/status.h"

namespace faultline {

/// Sends the log (spdlog's default logger) to stderr, and to `file` as well when it is not empty.
/// No colour when stderr is not a terminal. `who` names the process, e.g. "rank 3".
Status initLog(const std::string& who, const std::string& file = "");

}  // namespace faultline
