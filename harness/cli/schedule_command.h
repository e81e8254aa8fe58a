#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::cli {

/// Adds `schedule verify|cost|show` to the program. The verbs print to stdout, errors to stderr,
/// and set `exitCode` (kExitOk; kExitExpectation when verify finds problems; kExitUsage for a
/// request that makes no sense). Both references must outlive the parsing. Returns the subcommand.
CLI::App* addScheduleCommand(CLI::App& app, int& exitCode);

/// What `schedule verify` does with a schedule: prints the findings, as JSON on top of `head`
/// unless that is null, and returns the exit code.
int verifyAndPrint(const schedule::Schedule& schedule, nlohmann::json head);

}  // namespace faultline::cli
