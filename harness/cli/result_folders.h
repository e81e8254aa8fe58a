#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "reports/result.h"

namespace faultline::cli {

/// A result, and the folder that it is in; empty: it is a file by itself.
struct FoundResult {
  reports::ScenarioResult result;
  std::string folder;
};

/// As readResults, and where each was.
Result<std::vector<FoundResult>> findResults(std::span<const std::string> paths);

/// All results that the paths lead to: a result.json (or whatever a file is called), a folder that
/// has one, or the folders in a folder that have one, by name. An error when a path leads to none,
/// or one cannot be read.
Result<std::vector<reports::ScenarioResult>> readResults(std::span<const std::string> paths);

}  // namespace faultline::cli
