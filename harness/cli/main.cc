#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string_view>

#include "harness/cli/cli.h"
#include "harness/workload/rank_main.h"

namespace {

/// The hidden verb by which a controller starts the ranks of a run: it is no part of the command
/// line for people, and needs the descriptors of launch::Process.
bool isRank(int argc, char** argv) { return argc > 1 && std::string_view(argv[1]) == "rank"; }

/// Whether what we have written has gone where it was to go. A reader that has seen enough and left
/// (as `head` does) has missed nothing that it wanted.
bool outputArrived() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  pollfd out{STDOUT_FILENO, 0, 0};
  return ::poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (isRank(argc, argv)) return faultline::workload::rankMain();
  // A run goes on to its end and writes its result, also when nobody reads along any more.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const int code = faultline::cli::main(argc, argv);
    if (outputArrived()) return code;
    std::cerr << "faultline: the standard output could not be written: is the disk full?\n";
    return code == faultline::cli::kExitOk ? faultline::cli::kExitCannotRun : code;
  } catch (const std::exception& error) {
    // Caught so that everything on the way here was unwound: faults reverted, ranks ended.
    std::cerr << "faultline: " << error.what() << '\n';
    return faultline::cli::kExitCannotRun;
  }
}
