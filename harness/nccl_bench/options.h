#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/scenario/sweep.h"

namespace faultline::nccl_bench {

/// What is done when a call has failed.
enum class Recovery {
  kNone,         ///< the program ends
  kAbortReinit,  ///< the communicator is made anew, with all ranks
  kShrink,       ///< a smaller one is made of it, without the ranks behind a port that is down
};

/// What is called, how often, and with whom.
struct Options {
  scenario::Sweep sweep;
  int warmups = 5;  ///< calls of each cell before it is measured
  int calls = 20;   ///< of each cell, measured
  /// Each call is timed and checked on its own, and told one by one; else, as nccl-tests does it,
  /// the mean of calls in a row, and one more that is checked.
  bool each = false;
  bool check = true;
  /// A call (or a row of them) that is not done after so long has failed.
  Duration wait = 60s;
  /// After which the call is made again. Needs `each`.
  Recovery recovery = Recovery::kNone;

  int rank = 0;
  int ranks = 1;
  int gpu = 0;  ///< modulo those that the process sees; LOCAL_RANK unless the command line says it
  std::string address = "127.0.0.1";      ///< own one, where the ranks meet
  std::string rootAddress = "127.0.0.1";  ///< of rank 0
  int port = 29500;
  std::string progressFile;             ///< empty: none
  std::string recoveryFile;             ///< with `recovery`
  std::vector<std::string> interfaces;  ///< names of the ports that a rank looks at, to shrink
};

/// From the command line, and from the variables that launchers set (RANK, WORLD_SIZE, LOCAL_RANK,
/// MASTER_ADDR, MASTER_PORT and those of docs/command.md), which `variable` looks up: null when it
/// is not there. kAborted with a text for the standard output when nothing but help was asked for,
/// kInvalidArgument for a mistake.
Result<Options> readOptions(int argc, const char* const* argv,
                            const char* (*variable)(const char*));

}  // namespace faultline::nccl_bench
