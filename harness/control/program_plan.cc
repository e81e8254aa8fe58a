#include "harness/control/program_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <sstream>

#include "harness/baseline/nccl_variables.h"
#include "harness/launch/executable.h"

namespace faultline::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVerbsShim = "libfaultline-verbs.so";
constexpr const char* kVerbsShimFolder = "injector/verbs/shim";
constexpr const char* kShimVariable = "FAULTLINE_VERBS_SHIM";  // that every process has
/// Variables with libraries that a program loads.
constexpr std::array kLoaded{"LD_PRELOAD", "NCCL_NET_PLUGIN", "NCCL_IBVERBS_LIB", "MSCCLPP_IBV_SO"};

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

/// What a program is told to load, by its path, and the shim, where it is told of that.
std::vector<std::string> librariesOf(const wire::GuardedProgram& program, const std::string& shim) {
  std::set<std::string> found;
  for (const char* name : kLoaded) {
    const auto variable = program.environment.find(name);
    if (variable == program.environment.end()) continue;
    // As the loader takes them: with blanks or colons between.
    std::string words = variable->second;
    std::ranges::replace(words, ':', ' ');
    std::istringstream all(words);
    for (std::string word; all >> word;) {
      if (word.starts_with('/')) found.insert(word);
    }
  }
  const auto tells = [&](const std::string& text) {
    return !shim.empty() && text.find(shim) != std::string::npos;
  };
  const bool told = std::ranges::any_of(program.arguments, tells) ||
                    std::ranges::any_of(program.environment, [&](const auto& variable) {
                      return variable.first != kShimVariable && tells(variable.second);
                    });
  if (told) found.insert(shim);
  return {found.begin(), found.end()};
}

}  // namespace

command::NetworkNames networkNames(const std::vector<site::NodeNetwork>& network) {
  command::NetworkNames names;
  for (const site::NodeNetwork& node : network) {
    names.management.push_back(node.management.address);
    names.managementInterfaces.push_back(node.management.interface);
    std::vector<std::string>& addresses = names.rails.emplace_back();
    std::vector<std::string>& interfaces = names.railInterfaces.emplace_back();
    for (const site::Nic& nic : node.rails) {
      addresses.push_back(nic.address);
      interfaces.push_back(nic.interface);
    }
  }
  return names;
}

Result<ProgramPlan> planPrograms(const scenario::Scenario& scenario, const PlannedRun& planned,
                                 const std::string& folder, const command::NetworkNames& network,
                                 const FolderThere& there) {
  const command::Command& command = scenario.workload.command;
  const std::string shim = launch::findOwnLibrary(kVerbsShim, kVerbsShimFolder);
  ProgramPlan plan;
  for (int rank = 0; rank < command.processes(); ++rank) {
    ProgramPlan::Process& process = plan.processes.emplace_back();
    process.rank = rank;
    process.node = command.nodes[rank / command.perNode];
    process.folder = fmt::format("{}/rank{}", folder, rank);
    const std::string own = fmt::format("{}/rank{}", there(process.node, folder), rank);
    std::string progress;
    if (!command.progress.empty()) {
      process.progress = (fs::path(process.folder) / command.progress).string();
      progress = (fs::path(own) / command.progress).string();
    }
    const auto variables = command::variablesOf({.rank = rank,
                                                 .node = process.node,
                                                 .localRank = rank % command.perNode,
                                                 .nodes = command.nodes,
                                                 .perNode = command.perNode,
                                                 .output = own,
                                                 .progress = progress,
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
    // Elsewhere ours means nothing.
    if (program.workingDirectory.empty() && own != process.folder) program.workingDirectory = own;
    program.stdoutPath = fmt::format("{}/{}", own, kStdoutFile);
    program.stderrPath = fmt::format("{}/{}", own, kStderrFile);
    process.needs = librariesOf(program, shim);
  }
  return plan;
}

}  // namespace faultline::run
