#pragma once

#include <initializer_list>

namespace faultline::cli {

/// Exit codes of the program, as the contract of the command line states them.
enum ExitCode : int {
  kExitOk = 0,             ///< all expectations hold
  kExitExpectation = 1,    ///< an expectation fails
  kExitUsage = 2,          ///< usage or scenario mistake
  kExitCannotRun = 3,      ///< this machine cannot run it
  kExitNotRestored = 4,    ///< something could not be restored
  kExitInvalid = 5,        ///< invalid: a fault left no evidence, or an expectation has no value
  kExitInterrupted = 130,  ///< interrupted, after clean-up
};

/// Of two scenarios' codes the one that counts for both: an expectation that fails says more than a
/// result that proves nothing.
constexpr int worseExit(int one, int other) {
  for (const int code : {kExitInterrupted, kExitNotRestored, kExitCannotRun, kExitUsage,
                         kExitExpectation, kExitInvalid}) {
    if (one == code || other == code) return code;
  }
  return kExitOk;
}

/// Parses the command line, runs the verb and returns the exit code.
int main(int argc, char** argv);

}  // namespace faultline::cli
