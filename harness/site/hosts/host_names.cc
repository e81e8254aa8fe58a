#include "harness/site/hosts/host_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/input_file.h"
#include "harness/site/hosts/hostlist.h"
#include "harness/site/hosts/hosts_spec.h"
#include "harness/site/hosts/launcher.h"
#include "harness/site/hosts/printed_text.h"

namespace faultline::hosts {
namespace {

constexpr std::size_t kMostHostfileBytes = 1 << 20;
constexpr Duration kSqueueBudget = 30s;  // a busy slurmctld
constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kLoopbackNetwork = "127.";

// Variables with the path of a hostfile, of an allocation.
constexpr std::array kHostfiles{"PBS_NODEFILE", "OMPI_MCA_orte_default_hostfile"};

std::string fromProcess(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string_view takeWord(std::string_view& line) {
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(kBlanks)));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

Result<std::vector<std::string>> readHostfile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, readInput(path, {.what = "file with names of hosts",
                                                            .attempt = "read " + path,
                                                            .mostBytes = kMostHostfileBytes}));
  return parseHostfile(text, path);
}

Result<std::vector<std::string>> askForJob(const std::string& job) {
  const auto printed = outputOf({"squeue", "-h", "-j", job, "-o", "%T %N"}, kSqueueBudget);
  if (!printed.ok()) return printed.status().withContext("job " + job);
  return hostsOfJob(job, *printed);
}

bool hasAddress(const wire::HostFacts& facts, const std::string& address) {
  return std::ranges::any_of(facts.ports, [&](const wire::HostPort& port) {
    return std::ranges::any_of(port.addresses, [&](const std::string& written) {
      return written.substr(0, written.find('/')) == address;
    });
  });
}

Result<std::vector<std::string>> namesOf(const std::vector<std::string>& named,
                                         const std::string& job) {
  if (!named.empty()) return readHostfile(named.front());
  return job.empty() ? hostsOfAllocation(fromProcess) : askForJob(job);
}

}  // namespace

Result<std::vector<std::string>> parseHostfile(std::string_view text, const std::string& path) {
  std::vector<std::string> names;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line = line.substr(0, line.find('#'));
    const std::string name(takeWord(line));
    for (std::string_view word = takeWord(line); !word.empty(); word = takeWord(line)) {
      if (word.find('=') != std::string_view::npos) continue;
      return errorf(Code::kInvalidArgument,
                    "{}:{}: '{}' follows the name of the host: one host is on each line", path,
                    number, word);
    }
    if (!name.empty() && std::ranges::count(names, name) == 0) names.push_back(name);
  }
  if (names.empty()) return errorf(Code::kInvalidArgument, "{}: names no host", path);
  return names;
}

Result<std::vector<std::string>> hostsOfAllocation(const Environment& environment) {
  for (const char* const variable : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    if (const std::string list = environment(variable); !list.empty()) return expandHostlist(list);
  }
  for (const char* const variable : kHostfiles) {
    const std::string path = environment(variable);
    if (path.empty()) continue;
    auto names = readHostfile(path);
    return names.ok() ? std::move(names) : names.status().withContext(variable);
  }
  return errorf(
      Code::kNotFound,
      "none are named, and this is not inside of an allocation, of which alone they would be "
      "known: run it in a script of sbatch or in the shell of salloc, name a job of yours "
      "('job: ID'), or name them: 'hosts: [n1, n2]'");
}

Result<std::vector<std::string>> hostsOfJob(const std::string& job, std::string_view printed) {
  while (!printed.empty() && printed.back() == '\n') printed.remove_suffix(1);
  if (printed.find('\n') != std::string_view::npos) {
    return errorf(Code::kInvalidArgument,
                  "job {} is an array: write the number of one of its tasks (squeue -o %A)", job);
  }
  const std::string_view state = takeWord(printed);
  const std::string_view nodes = takeWord(printed);
  if (state.empty()) return errorf(Code::kNotFound, "job {} is over", job);
  if (nodes.empty() || state != "RUNNING") {
    return errorf(Code::kUnavailable, "job {} is {} and has no hosts to run on now", job, state);
  }
  return expandHostlist(nodes);
}

site::Refusal findHosts(site::ClusterSpec& spec) {
  std::vector<std::string>& names = spec.settings[std::string(kHosts)];
  const HostsSpec own = hostsSpec(spec);
  const bool file = names.size() == 1 && names.front().find('/') != std::string::npos;
  if (!names.empty() && !file) return {};
  if (names.empty() && own.launcher->thisMachine) {
    return {std::string(kHosts),
            "hosts: with 'launcher: local' the names are yours: 'hosts: [a, b]'"};
  }
  auto found = namesOf(names, own.job);
  if (!found.ok()) return {std::string(kHosts), "hosts: " + found.status().message()};
  names = *std::move(found);
  return {};
}

bool isReachedFromOutside(const wire::HostFacts& facts) {
  return !facts.reachedAt.starts_with(kLoopbackNetwork) && hasAddress(facts, facts.reachedAt);
}

void findReachedAt(const std::vector<std::string>& addresses, wire::HostFacts& facts) {
  for (const std::string& address : addresses) {
    if (isReachedFromOutside(facts)) return;
    if (!address.starts_with(kLoopbackNetwork) && hasAddress(facts, address)) {
      facts.reachedAt = address;
    }
  }
}

Result<std::string> sectionOf(std::string_view word) {
  const std::size_t colon = word.find(':');
  const Launcher* const launcher = findLauncher(word.substr(0, colon));
  if (launcher == nullptr) return std::string();
  std::string hosts;
  if (colon != std::string_view::npos) {
    ASSIGN_OR_RETURN(const auto names, expandHostlist(word.substr(colon + 1)));
    hosts = ", hosts: " +
            nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  return fmt::format("cluster: {{kind: hosts, launcher: {}{}}}\n", launcher->name, hosts);
}

}  // namespace faultline::hosts
