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

command::NetworkNames networkNames(const std::vector<site::NodeNetwork>& network) {
  command::NetworkNames names;
  names.managementInterface = network.front().management.interface;
  for (const site::Nic& nic : network.front().rails) names.railInterfaces.push_back(nic.interface);
  for (const site::NodeNetwork& node : network) {
    names.management.push_back(node.management.address);
    std::vector<std::string>& addresses = names.rails.emplace_back();
    for (const site::Nic& nic : node.rails) addresses.push_back(nic.address);
  }
  return names;
}

Result<ProgramPlan> planPrograms(const scenario::Scenario& scenario, const PlannedRun& planned,
                                 const std::string& folder, const command::NetworkNames& network) {
  const command::Command& command = scenario.workload.command;
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
