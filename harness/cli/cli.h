#pragma once

namespace faultline::cli {

/// Exit codes of the program, as the contract of the command line states them.
enum ExitCode : int {
  kExitOk = 0,             ///< all expectations hold
  kExitExpectation = 1,    ///< an expectation fails
  kExitUsage = 2,          ///< usage or scenario mistake
  kExitCannotRun = 3,      ///< this machine cannot run it
  kExitNotRestored = 4,    ///< something could not be restored
  kExitInvalid = 5,        ///< invalid: a fault left no evidence
  kExitInterrupted = 130,  ///< interrupted, after clean-up
};

/// Parses the command line, runs the verb and returns the exit code.
int main(int argc, char** argv);

}  // namespace faultline::cli
