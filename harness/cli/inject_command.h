#pragma once

#include <CLI/App.hpp>

namespace faultline::cli {

/// `faultline inject`: one fault by hand, on something that runs; or the list of a process's queue
/// pairs.
CLI::App* addInjectCommand(CLI::App& app, int& exit_code);

}  // namespace faultline::cli
