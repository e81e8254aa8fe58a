#pragma once

#include <CLI/CLI.hpp>

namespace faultline::cli {

/// Adds `schedule verify|cost|show` to the program. The verbs print to stdout, errors to stderr,
/// and set `exitCode` (kExitOk; kExitExpectation when verify finds problems; kExitUsage for a
/// request that makes no sense). Both references must outlive the parsing. Returns the subcommand.
CLI::App* addScheduleCommand(CLI::App& app, int& exitCode);

}  // namespace faultline::cli
