#include "harness/site/hosts/hosts_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/parameter.h"
#include "harness/site/hosts/host_names.h"
#include "harness/site/hosts/launcher_list.h"

namespace faultline::hosts {
namespace {

constexpr std::string_view kLauncher = "launcher";
constexpr std::string_view kManagement = "management";
constexpr std::string_view kProgram = "program";
constexpr std::string_view kSsh = "ssh";
constexpr std::string_view kSrun = "srun";
constexpr std::string_view kMpirun = "mpirun";
constexpr std::string_view kLease = "lease";
constexpr std::string_view kRails = "rails";
constexpr std::string_view kRanksPerNode = "ranks_per_node";
constexpr std::string_view kAuto = "auto";

constexpr double kLargestJob = 0xfffffffe;  // of Slurm: 32 bits
constexpr double kShortestLease = 1;
constexpr double kLongestLease = 600;

std::vector<std::string> listOf(const site::Settings& settings, std::string_view key) {
  const auto found = settings.find(key);
  return found == settings.end() ? std::vector<std::string>() : found->second;
}

std::string textOf(const site::Settings& settings, std::string_view key) {
  const std::vector<std::string> list = listOf(settings, key);
  return list.empty() ? "" : list.front();
}

/// Of a program of the key's name, if nothing else is said.
std::vector<std::string> commandOf(const site::Settings& settings, std::string_view key) {
  std::vector<std::string> list = listOf(settings, key);
  return list.empty() ? std::vector<std::string>{std::string(key)} : list;
}

/// Fit to be an argument of ssh that is no option, and a word in messages.
bool isHostName(std::string_view name) {
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("._-@:%[]").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return !name.empty() && name.front() != '-' && std::ranges::all_of(name, fits);
}

}  // namespace

constinit const std::array<site::Setting, 10> kSettings{{
    site::Setting{{kLauncher, ParameterType::kEnum, "ssh",
                   "of kind hosts: who starts the agent of each host; slurm: steps of a job, by "
                   "srun; local: this machine is every host, and its ranks reach each other by "
                   "loopback and memory",
                   kLauncherNames}},
    site::Setting{
        {kHosts, ParameterType::kText, "",
         "of kind hosts: their names, as the launcher knows them; each is a node. One word "
         "with a slash is a file with a name on each line. Left out: those of the "
         "allocation (of Slurm or PBS) in which faultline runs, or of `job`"},
        /*list=*/true},
    site::Setting{{kJob,
                   ParameterType::kInteger,
                   "",
                   "of kind hosts: a job of Slurm, where faultline does not run inside of it",
                   {},
                   1,
                   kLargestJob}},
    site::Setting{
        {kManagement, ParameterType::kText, "auto",
         "of kind hosts: the interface of the management network on all hosts; auto: that "
         "to which ssh comes, or that has the address of the host's name"}},
    site::Setting{{kProgram, ParameterType::kText, "",
                   "of kind hosts: the path of faultline on them, if it is not the same as here"}},
    site::Setting{{kFolderSetting, ParameterType::kText, "",
                   "of kind hosts: absolute path of a folder that all of them see, for the "
                   "checkpoints of strategies that restart"}},
    site::Setting{{kSsh, ParameterType::kText, "ssh",
                   "of kind hosts: the ssh command, or a list of it and options: [ssh, -F, FILE]"},
                  /*list=*/true},
    site::Setting{{kSrun, ParameterType::kText, "srun",
                   "of kind hosts: the same of srun, for 'launcher: slurm'"},
                  /*list=*/true},
    site::Setting{{kMpirun, ParameterType::kText, "mpirun",
                   "of kind hosts: the same of Open MPI's mpirun, for 'launcher: mpirun'"},
                  /*list=*/true},
    site::Setting{{kLease,
                   ParameterType::kDuration,
                   "10s",
                   "of kind hosts: an agent that hears nothing for so long ends, with all that it "
                   "started; a host that is not heard for so long is lost",
                   {},
                   kShortestLease,
                   kLongestLease}},
}};

HostsSpec hostsSpec(const site::ClusterSpec& spec) {
  HostsSpec own;
  const Launcher* const launcher = findLauncher(textOf(spec.settings, kLauncher));
  own.launcher = launcher == nullptr ? launchers().front() : launcher;
  own.names = listOf(spec.settings, kHosts);
  const std::string management = textOf(spec.settings, kManagement);
  if (management != kAuto) own.management = management;
  own.program = textOf(spec.settings, kProgram);
  own.folder = textOf(spec.settings, kFolderSetting);
  own.ssh = commandOf(spec.settings, kSsh);
  own.srun = commandOf(spec.settings, kSrun);
  own.mpirun = commandOf(spec.settings, kMpirun);
  own.job = textOf(spec.settings, kJob);
  const auto lease = parseDuration(textOf(spec.settings, kLease));
  own.lease = lease.ok() ? *lease : Duration(10s);
  own.ranksPerNode = spec.ranksPerNode;
  own.railChoice = spec.railChoice;
  own.rails = spec.rails;
  own.railRate = spec.railRate;
  return own;
}

std::vector<site::Refusal> check(const HostsSpec& spec) {
  std::vector<site::Refusal> wrong;
  const auto refuse = [&](std::string_view key, std::string reason) {
    wrong.push_back({std::string(key), std::move(reason)});
  };
  if (spec.names.empty()) {
    refuse(kHosts, "hosts: a cluster of kind hosts needs their names: 'hosts: [n1, n2]'");
  }
  if (spec.names.size() > static_cast<std::size_t>(kMost.nodes)) {
    refuse(kHosts, fmt::format("hosts: {} are possible, not {}", kMost.nodes, spec.names.size()));
  } else if (static_cast<int>(spec.names.size()) * spec.ranksPerNode > kMostRanks) {
    refuse(kRanksPerNode,
           fmt::format("ranks_per_node: {} of each of {} hosts are {} ranks, and {} "
                       "are possible",
                       spec.ranksPerNode, spec.names.size(),
                       static_cast<int>(spec.names.size()) * spec.ranksPerNode, kMostRanks));
  }
  for (const std::string& name : spec.names) {
    if (isHostName(name)) continue;
    refuse(kHosts, fmt::format("hosts: '{}' is no name of a host", name));
    break;
  }
  if (!spec.folder.empty() && !spec.folder.starts_with('/')) {
    refuse(kFolderSetting, fmt::format("folder: '{}' is no absolute path", spec.folder));
  }
  if (spec.launcher->check != nullptr) {
    std::ranges::move(spec.launcher->check(spec), std::back_inserter(wrong));
  }
  if (spec.railChoice.names.size() > static_cast<std::size_t>(kMost.rails)) {
    refuse(kRails, fmt::format("rails: {} of a host are possible, not {}", kMost.rails,
                               spec.railChoice.names.size()));
  }
  if (spec.railChoice.byNode.empty()) return wrong;
  const std::size_t rails = spec.railChoice.byNode.begin()->second.size();
  for (const auto& [host, names] : spec.railChoice.byNode) {
    if (std::ranges::count(spec.names, host) == 0) {
      refuse(kRails, fmt::format("rails: '{}' is none of the hosts", host));
    } else if (names.size() != rails || rails > static_cast<std::size_t>(kMost.rails)) {
      refuse(kRails,
             fmt::format("rails: each host needs as many as the others, {} at most", kMost.rails));
    } else {
      continue;
    }
    return wrong;
  }
  for (const std::string& name : spec.names) {
    if (spec.railChoice.byNode.contains(name)) continue;
    refuse(kRails, fmt::format("rails: those of {} are missing", name));
    break;
  }
  return wrong;
}

std::vector<std::string> agentCommand(const HostsSpec& spec, const std::string& host,
                                      const std::string& ownProgram) {
  return spec.launcher->command(spec, host, spec.program.empty() ? ownProgram : spec.program);
}

}  // namespace faultline::hosts
