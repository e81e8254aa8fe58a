#pragma once

#include <string>
#include <vector>

#include "base/executable.h"
#include "base/status.h"
#include "harness/command/variables.h"
#include "harness/launch/executable.h"
#include "harness/record/run_order.h"
#include "harness/scenario/scenario.h"
#include "harness/site/cluster.h"
#include "wire/guard.h"

namespace faultline::run {

/// Names of the files in a process's output folder that hold what it prints.
inline constexpr const char* kStdoutFile = "stdout.txt";
inline constexpr const char* kStderrFile = "stderr.txt";

/// The programs of one run of a command, ready to be started. Nothing here knows how.
struct ProgramPlan {
  struct Process {
    int rank = 0;
    int node = 0;
    std::string folder;    ///< absolute
    std::string progress;  ///< absolute; empty: none
    wire::GuardedProgram program;
  };
  std::vector<Process> processes;  ///< by rank
};

/// How a cluster's nodes find each other.
command::NetworkNames networkNames(const std::vector<site::NodeNetwork>& network);

/// Everything about the processes but where their program is. `folder` is the run's own, absolute.
/// Pure.
Result<ProgramPlan> planPrograms(const scenario::Scenario& scenario, const PlannedRun& planned,
                                 const std::string& folder, const command::NetworkNames& network);

}  // namespace faultline::run
