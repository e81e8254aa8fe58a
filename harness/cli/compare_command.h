#pragma once

#include <CLI/CLI.hpp>

namespace faultline::cli {

/// `faultline compare BASE NEW`: what changed between two results, or folders of results.
/// `exit_code`: 0 no regression, 1 at least one, 2 a side has no result that can be read, 3 a file
/// could not be written, 5 no row could be compared.
CLI::App* addCompareCommand(CLI::App& app, int& exit_code);

}  // namespace faultline::cli
