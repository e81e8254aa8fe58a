#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/printable.h"
#include "base/standard_descriptors.h"
#include "harness/agent/agent.h"
#include "harness/cli/cli.h"
#include "harness/site/rdma_vm/guest_agent.h"
#include "harness/site/rdma_vm/machine_room.h"
#include "harness/workload/rank_main.h"

namespace {

/// The hidden verbs: agents of nodes, which a controller starts; ranks, which agents start; the
/// guests of a laboratory, and what runs first in each of them. They are no part of the command
/// line for people, and need the descriptors of launch::Process.
bool isVerb(int argc, char** argv, std::string_view verb) { return argc > 1 && argv[1] == verb; }

/// Whether what we have written has gone where it was to go. A reader that has seen enough and left
/// (as `head` does) has missed nothing that it wanted.
bool outputArrived() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  pollfd out{STDOUT_FILENO, 0, 0};
  return ::poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

/// Why not: the error is long gone, and a limit that is reached still is.
std::string whyNotArrived() {
  struct stat file = {};
  rlimit limit = {};
  const bool at_limit = ::fstat(STDOUT_FILENO, &file) == 0 && S_ISREG(file.st_mode) &&
                        ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
                        static_cast<rlim_t>(file.st_size) >= limit.rlim_cur;
  if (!at_limit) return "is the disk full?";
  return "the file is as large as files may be" + faultline::limitBehind(EFBIG);
}

}  // namespace

int main(int argc, char** argv) {
  const faultline::StandardDescriptors standard;  // before anything is opened
  // A file that passes the limit of sizes is an error that says so.
  std::signal(SIGXFSZ, SIG_IGN);
  if (isVerb(argc, argv, "rank")) return faultline::workload::rankMain();
  if (isVerb(argc, argv, "agent")) return faultline::agent::agentMain(argc, argv);
  if (isVerb(argc, argv, "machine-room")) return faultline::rdma_vm::machineRoomMain();
  if (isVerb(argc, argv, "guest-agent")) return faultline::rdma_vm::guestAgentMain();
  // A run goes on to its end and writes its result, also when nobody reads along any more.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const int code = faultline::cli::main(argc, argv);
    if (outputArrived()) return code;
    std::cerr << "faultline: the standard output could not be written: " << whyNotArrived() << '\n';
    return code == faultline::cli::kExitOk ? faultline::cli::kExitCannotRun : code;
  } catch (const std::exception& error) {
    // Caught so that everything on the way here was unwound: faults reverted, ranks ended.
    const std::string why = faultline::statusOf(error).message();
    std::cerr << "faultline: " << faultline::printableMessage(why) << '\n';
    return faultline::cli::kExitCannotRun;
  }
}
