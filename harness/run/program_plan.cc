#include "harness/run/program_plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "harness/baseline/nccl_variables.h"

namespace faultline::run {
namespace {

namespace fs = std::filesystem;

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

bool isProgram(const std::string& file) {
  std::error_code ignored;
  return ::access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file, ignored);
}

}  // namespace

command::NetworkNames networkNames(int nodes, int rails) {
  command::NetworkNames names;
  names.managementInterface = cluster::kManagementName;
  for (int rail = 0; rail < rails; ++rail) names.railInterfaces.push_back(cluster::railName(rail));
  for (int node = 0; node < nodes; ++node) {
    names.management.push_back(cluster::managementAddress(node));
    std::vector<std::string>& addresses = names.rails.emplace_back();
    for (int rail = 0; rail < rails; ++rail) addresses.push_back(cluster::railAddress(node, rail));
  }
  return names;
}

Result<ProgramPlan> planPrograms(const scenario::Scenario& scenario, const PlannedRun& planned,
                                 const std::string& folder) {
  const command::Command& command = scenario.workload.command;
  const command::NetworkNames network =
      networkNames(scenario.cluster.nodes, scenario.cluster.rails);
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
                                                 .seed = scenario.seed},
                                                network);
    launch::GuardedProgram& program = process.program;
    for (const std::string& word : command.run) {
      ASSIGN_OR_RETURN(program.arguments.emplace_back(), command::expand(word, variables));
    }
    ASSIGN_OR_RETURN(program.environment, environmentOf(command, *planned.strategy, variables));
    ASSIGN_OR_RETURN(program.working_directory,
                     command::expand(command.workingDirectory, variables));
    program.stdout_path = fmt::format("{}/{}", process.folder, kStdoutFile);
    program.stderr_path = fmt::format("{}/{}", process.folder, kStderrFile);
  }
  return plan;
}

Result<std::string> findExecutable(const std::string& name, const std::string& workingDirectory,
                                   const std::string& path) {
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(fs::absolute(fs::path(workingDirectory) / name).string());
  } else {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      candidates.push_back(fs::absolute(fs::path(workingDirectory) / folder / name).string());
    }
  }
  std::string forbidden;
  for (const std::string& candidate : candidates) {
    if (isProgram(candidate)) return candidate;
    std::error_code ignored;
    if (forbidden.empty() && fs::exists(candidate, ignored)) forbidden = candidate;
  }
  if (!forbidden.empty()) {
    return errorf(Code::kPermissionDenied, "{} is there, but it is no program that can be executed",
                  forbidden);
  }
  return errorf(Code::kNotFound, "there is no program '{}'{}", name,
                name.find('/') != std::string::npos ? "" : " in PATH, which is " + path);
}

}  // namespace faultline::run
