#pragma once

#include <CLI/App.hpp>

namespace faultline::cli {

/// `describe NAME`: the page of a fault, strategy, workload, algorithm or scenario, with
/// parameters, units and defaults; "scenario" is the language itself.
CLI::App* addDescribeCommand(CLI::App& app, int& exit_code);

}  // namespace faultline::cli
