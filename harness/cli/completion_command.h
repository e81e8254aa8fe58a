#pragma once

#include <CLI/App.hpp>

namespace faultline::cli {

/// `faultline completion bash`: a script that completes verbs, their options, and names.
CLI::App* addCompletionCommand(CLI::App& app, int& exit_code);

}  // namespace faultline::cli
