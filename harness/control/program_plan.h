#pragma once

#include <functional>
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
    std::string folder;    ///< absolute, here
    std::string progress;  ///< absolute, here; empty: none
    wire::GuardedProgram program;
    std::vector<std::string> needs;  ///< files that it is told of by their path here
  };
  std::vector<Process> processes;  ///< by rank
};

/// How a cluster's nodes find each other.
command::NetworkNames networkNames(const std::vector<site::NodeNetwork>& network);

/// Where the processes of a node find what is here in a folder, absolute both
/// (Cluster::folderThere).
using FolderThere = std::function<std::string(int node, const std::string& folder)>;

/// Everything about the processes but where their program is. `folder` is the run's own, absolute,
/// here. Pure.
Result<ProgramPlan> planPrograms(const scenario::Scenario& scenario, const PlannedRun& planned,
                                 const std::string& folder, const command::NetworkNames& network,
                                 const FolderThere& there);

}  // namespace faultline::run
