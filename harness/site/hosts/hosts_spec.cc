#include "harness/site/hosts/hosts_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/parameter.h"

namespace faultline::hosts {
namespace {

constexpr std::string_view kLauncher = "launcher";
constexpr std::string_view kHosts = "hosts";
constexpr std::string_view kManagement = "management";
constexpr std::string_view kProgram = "program";
constexpr std::string_view kSsh = "ssh";
constexpr std::string_view kLease = "lease";
constexpr std::string_view kRails = "rails";
constexpr std::string_view kAuto = "auto";

constexpr std::array<std::string_view, 2> kLaunchers{"ssh", "local"};
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

/// Fit to be an argument of ssh that is no option, and a word in messages.
bool isHostName(std::string_view name) {
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("._-@:%[]").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return !name.empty() && name.front() != '-' && std::ranges::all_of(name, fits);
}

/// A word of a shell.
std::string shellWord(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// The same, but for a home at its beginning, which the shell there fills in.
std::string programWord(std::string_view program) {
  constexpr std::string_view kHome = "~/";
  if (!program.starts_with(kHome)) return shellWord(program);
  return std::string(kHome) + shellWord(program.substr(kHome.size()));
}

}  // namespace

constinit const std::array<site::Setting, 7> kSettings{{
    site::Setting{{kLauncher, ParameterType::kEnum, "ssh",
                   "of kind hosts: who starts the agent of each host; local: this machine is every "
                   "host, and its ranks reach each other by loopback and memory",
                   kLaunchers}},
    site::Setting{{kHosts, ParameterType::kText, "",
                   "of kind hosts: their names, as ssh knows them; each is a node"},
                  /*list=*/true},
    site::Setting{
        {kManagement, ParameterType::kText, "auto",
         "of kind hosts: the interface of the management network on all hosts; auto: that "
         "to which ssh comes"}},
    site::Setting{{kProgram, ParameterType::kText, "",
                   "of kind hosts: the path of faultline on them, if it is not the same as here"}},
    site::Setting{{kFolderSetting, ParameterType::kText, "",
                   "of kind hosts: absolute path of a folder that all of them see, for the "
                   "checkpoints of strategies that restart"}},
    site::Setting{{kSsh, ParameterType::kText, "ssh",
                   "of kind hosts: the ssh command, or a list of it and options: [ssh, -F, FILE]"},
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
  own.launcher =
      textOf(spec.settings, kLauncher) == kLaunchers[1] ? Launcher::kLocal : Launcher::kSsh;
  own.names = listOf(spec.settings, kHosts);
  const std::string management = textOf(spec.settings, kManagement);
  if (management != kAuto) own.management = management;
  own.program = textOf(spec.settings, kProgram);
  own.folder = textOf(spec.settings, kFolderSetting);
  own.ssh = listOf(spec.settings, kSsh);
  const auto lease = parseDuration(textOf(spec.settings, kLease));
  own.lease = lease.ok() ? *lease : Duration(10s);
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
  if (spec.names.size() > static_cast<std::size_t>(site::kMost.nodes)) {
    refuse(kHosts,
           fmt::format("hosts: {} are possible, not {}", site::kMost.nodes, spec.names.size()));
  }
  for (const std::string& name : spec.names) {
    if (isHostName(name)) continue;
    refuse(kHosts, fmt::format("hosts: '{}' is no name of a host", name));
    break;
  }
  if (!spec.folder.empty() && !spec.folder.starts_with('/')) {
    refuse(kFolderSetting, fmt::format("folder: '{}' is no absolute path", spec.folder));
  }
  // Often written so; a path may have spaces.
  if (spec.ssh.size() == 1 && spec.ssh.front().find(" -") != std::string::npos) {
    refuse(kSsh,
           fmt::format("ssh: '{}' is one word: write a list, [ssh, -F, FILE]", spec.ssh.front()));
  }
  const bool named = !spec.railChoice.names.empty() || !spec.railChoice.byNode.empty();
  if (spec.launcher == Launcher::kLocal && named) {
    refuse(kRails,
           "rails: with 'launcher: local' all hosts are this machine, whose addresses reach each "
           "other by loopback: write how many, or leave it out");
  }
  if (spec.launcher == Launcher::kLocal && !spec.management.empty()) {
    refuse(kManagement, "management: with 'launcher: local' it is loopback; remove it");
  }
  if (spec.railChoice.names.size() > static_cast<std::size_t>(site::kMost.rails)) {
    refuse(kRails, fmt::format("rails: {} of a host are possible, not {}", site::kMost.rails,
                               spec.railChoice.names.size()));
  }
  if (spec.railChoice.byNode.empty()) return wrong;
  const std::size_t rails = spec.railChoice.byNode.begin()->second.size();
  for (const auto& [host, names] : spec.railChoice.byNode) {
    if (std::ranges::count(spec.names, host) == 0) {
      refuse(kRails, fmt::format("rails: '{}' is none of the hosts", host));
    } else if (names.size() != rails || rails > static_cast<std::size_t>(site::kMost.rails)) {
      refuse(kRails, fmt::format("rails: each host needs as many as the others, {} at most",
                                 site::kMost.rails));
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
  const std::string program = spec.program.empty() ? ownProgram : spec.program;
  if (spec.launcher == Launcher::kLocal) return {program, "agent", "--stdio"};
  // Before those of the user, as ssh takes the first value: no terminal, whose end would turn bytes
  // into others; nobody is there to be asked for a password; and neither ports nor keys nor the
  // screen of this machine are opened to a host, as for a login perhaps.
  std::vector<std::string> command{
      spec.ssh.front(), "-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes"};
  command.insert(command.end(), spec.ssh.begin() + 1, spec.ssh.end());
  command.insert(command.end(), {"-o", "ConnectTimeout=10"});
  command.push_back(host);
  command.push_back(fmt::format("exec {} agent --stdio", programWord(program)));
  return command;
}

}  // namespace faultline::hosts
