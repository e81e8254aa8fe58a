#pragma once

#include <CLI/App.hpp>

namespace faultline::cli {

/// `faultline faultd`: the fault service of this host.
CLI::App* addFaultdCommand(CLI::App& app, int& exit_code);

}  // namespace faultline::cli
