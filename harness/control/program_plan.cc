#include "harness/control/program_plan.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/baseline/nccl_variables.h"
#include "harness/launch/executable.h"

namespace faultline::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVerbsShim = "libfaultline-verbs.so";
constexpr const char* kVerbsShimFolder = "injector/verbs/shim";

/// Variables that are always there, the workload's, those of the row's kind, the row's own: each
/// may replace those before it.
Result<std::map<std::string, std::string>> environmentOf(
    const command::Command& command, const scenario::Strategy& row,
    const std::map<std::string, std::string>& variables) {
  std::map<std::string, std::string> environment = command::environmentOf(variables);
  const auto ofKind = baseline::ncclVariables(row.kind(), row.options);
  for (const auto* additions : {&command.environment, &ofKind, &row.environment}) {
    for (const auto& [name, text] : *additions) {
      ASSIGN_OR_RETURN(environment[name], command::expand(text, variables));
    }
  }
  return environment;
}

}  // namespace

command::NetworkNames networkNames(int nodes, int rails) {
  command::NetworkNames names;
  names.managementInterface = netns::kManagementName;
  for (int rail = 0; rail < rails; ++rail) names.railInterfaces.push_back(netns::railName(rail));
  for (int node = 0; node < nodes; ++node) {
    names.management.push_back(netns::managementAddress(node));
    std::vector<std::string>& addresses = names.rails.emplace_back();
    for (int rail = 0; rail < rails; ++rail) addresses.push_back(netns::railAddress(node, rail));
  }
  return names;
}

Result<ProgramPlan> planPrograms(const scenario::Scenario& scenario, const PlannedRun& planned,
                                 const std::string& folder) {
  const command::Command& command = scenario.workload.command;
  const command::NetworkNames network =
      networkNames(scenario.cluster.nodes, scenario.cluster.rails);
  const std::string shim = launch::findOwnLibrary(kVerbsShim, kVerbsShimFolder);
  ProgramPlan plan;
  for (int rank = 0; rank < command.processes(); ++rank) {
    ProgramPlan::Process& process = plan.processes.emplace_back();
    process.rank = rank;
    process.node = command.nodes[rank / command.perNode];
    process.folder = fmt::format("{}/rank{}", folder, rank);
    if (!command.progress.empty()) {
      process.progress = (fs::path(process.folder) / command.progress).string();
    }
    const auto variables = command::variablesOf({.rank = rank,
                                                 .node = process.node,
                                                 .localRank = rank % command.perNode,
                                                 .nodes = command.nodes,
                                                 .perNode = command.perNode,
                                                 .output = process.folder,
                                                 .progress = process.progress,
                                                 .strategy = planned.strategy->name,
                                                 .block = planned.block,
                                                 .seed = scenario.seed,
                                                 .verbsShim = shim},
                                                network);
    wire::GuardedProgram& program = process.program;
    for (const std::string& word : command.run) {
      ASSIGN_OR_RETURN(program.arguments.emplace_back(), command::expand(word, variables));
    }
    ASSIGN_OR_RETURN(program.environment, environmentOf(command, *planned.strategy, variables));
    ASSIGN_OR_RETURN(program.workingDirectory,
                     command::expand(command.workingDirectory, variables));
    program.stdoutPath = fmt::format("{}/{}", process.folder, kStdoutFile);
    program.stderrPath = fmt::format("{}/{}", process.folder, kStderrFile);
  }
  return plan;
}

}  // namespace faultline::run
