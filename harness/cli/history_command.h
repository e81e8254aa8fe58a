#pragma once

#include <CLI/CLI.hpp>

namespace faultline::cli {

/// `faultline history add|trend`: a SQLite file of results, and what changed since the nights
/// before. `exit_code`: as `compare`, and 3 where the build has no SQLite.
CLI::App* addHistoryCommand(CLI::App& app, int& exit_code);

}  // namespace faultline::cli
