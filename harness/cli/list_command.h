#pragma once

#include <CLI/App.hpp>

namespace faultline::cli {

/// `list [scenarios|faults|strategies|workloads|algorithms]`: what there is, one line each.
CLI::App* addListCommand(CLI::App& app, int& exit_code);

}  // namespace faultline::cli
