#pragma once

#include <CLI/App.hpp>

namespace faultline::cli {

/// `doctor`: what this machine can do, what each missing thing costs, and what to do about it.
/// Exit 0 when the quick start can run here, 3 when not.
CLI::App* addDoctorCommand(CLI::App& app, int& exit_code);

}  // namespace faultline::cli
