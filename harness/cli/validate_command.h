#pragma once

#include <CLI/App.hpp>

namespace faultline::cli {

/// `validate FILE...`: reads and checks scenarios and prints every mistake on stdout; exit 2 when
/// there is one.
CLI::App* addValidateCommand(CLI::App& app, int& exit_code);

}  // namespace faultline::cli
