#include <exception>
#include <iostream>
#include <string_view>

#include "harness/cli/cli.h"
#include "harness/workload/rank_main.h"

namespace {

/// The hidden verb by which a controller starts the ranks of a run: it is no part of the command
/// line for people, and needs the descriptors of launch::Process.
bool isRank(int argc, char** argv) { return argc > 1 && std::string_view(argv[1]) == "rank"; }

}  // namespace

int main(int argc, char** argv) {
  if (isRank(argc, argv)) return faultline::workload::rankMain();
  try {
    return faultline::cli::main(argc, argv);
  } catch (const std::exception& error) {
    // Caught so that everything on the way here was unwound: faults reverted, ranks ended.
    std::cerr << "faultline: " << error.what() << '\n';
    return faultline::cli::kExitCannotRun;
  }
}
