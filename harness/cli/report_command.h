#pragma once

#include <CLI/CLI.hpp>

namespace faultline::cli {

/// `faultline report DIR`: makes the report of a finished run again from its result.json.
/// `exitCode` is set when the verb has run: 0 when all files were written (whatever the verdict
/// is), 2 when DIR holds no result that can be read, 3 when a file could not be written.
CLI::App* addReportCommand(CLI::App& app, int& exitCode);

}  // namespace faultline::cli
