#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "reports/result.h"

namespace faultline::cli {

/// All results that the paths lead to: a result.json (or whatever a file is called), a folder that
/// has one, or the folders in a folder that have one, by name. An error when a path leads to none,
/// or one cannot be read.
Result<std::vector<reports::ScenarioResult>> readResults(std::span<const std::string> paths);

}  // namespace faultline::cli
