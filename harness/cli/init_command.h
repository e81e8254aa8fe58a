#pragma once

#include <CLI/App.hpp>

namespace faultline::cli {

/// `faultline init`: writes a commented scenario, from options or from a few questions.
CLI::App* addInitCommand(CLI::App& app, int& exit_code);

}  // namespace faultline::cli
