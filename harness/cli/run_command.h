#pragma once

#include <CLI/CLI.hpp>

namespace faultline::cli {

/// `faultline run FILE...`: runs scenarios and writes their reports. `exitCode` is set when the
/// verb has run, as the contract of the command line says.
CLI::App* addRunCommand(CLI::App& app, int& exitCode);

}  // namespace faultline::cli
