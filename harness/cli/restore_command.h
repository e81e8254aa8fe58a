#pragma once

#include <CLI/App.hpp>

namespace faultline::cli {

/// `faultline restore`: undoes every strike on this host's interfaces whose holder is gone.
CLI::App* addRestoreCommand(CLI::App& app, int& exit_code);

/// `faultline status`: what is held, what is left, and what the policy allows.
CLI::App* addStatusCommand(CLI::App& app, int& exit_code);

}  // namespace faultline::cli
