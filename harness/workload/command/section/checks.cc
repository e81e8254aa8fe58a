#include "harness/workload/command/section/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/text.h"
#include "base/units.h"
#include "harness/command/variables.h"
#include "harness/scenario/cluster_reader.h"
#include "harness/scenario/record_reader.h"

namespace faultline::scenario {
namespace {

constexpr std::string_view kPath = "workload.command";

class CommandChecker {
 public:
  explicit CommandChecker(const WorkloadChecking& checking)
      : scenario_(checking.scenario),
        command_(scenario_.workload.command),
        root_(checking.root),
        findings_(checking.findings) {}

  void check() {
    checkKeysOfOurRanks();
    checkNodes();
    checkTimeLimit();
    checkThroughput();
    checkPlaceholders();
    for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
      checkDuring(scenario_.faults[i], fmt::format("faults.{}.during", i));
    }
    for (std::size_t i = 0; i < scenario_.sequences.size(); ++i) {
      const std::vector<Fault>& faults = scenario_.sequences[i].faults;
      if (!faults.empty()) {
        checkDuring(faults.front(), fmt::format("sequences.{}.faults.0.during", i));
      }
    }
  }

 private:
  void fail(std::string_view path, std::string message) {
    findings_.add(locate(root_, path), std::move(message));
  }
  static std::string below(std::string_view key) { return joinPath(std::string(kPath), key); }

  /// Keys by which only ranks of ours are told something.
  void checkKeysOfOurRanks() {
    const auto refuse = [&](const Node& node, std::string_view key) {
      findings_.add(node.where, fmt::format("{}: programs that are not ours know nothing of it: "
                                            "remove it, or say it in their own words under "
                                            "'workload.command.env'",
                                            key));
    };
    for (const std::string_view key : {"telemetry", "io_threads"}) {
      if (const Node* const node = root_.find(key)) refuse(*node, key);
    }
    const Node* const limits = root_.find("limits");
    for (std::size_t i = 0; limits != nullptr && i < limits->entries.size(); ++i) {
      const Entry& limit = limits->entries[i];
      if (limit.key != "deadline") refuse(limit.value, limit.key);
    }
  }

  void checkNodes() {
    if (!findings_.usable({below("nodes"), "cluster.nodes"})) return;
    for (const int node : command_.nodes) {
      if (node < scenario_.cluster.nodes) continue;
      fail(below("nodes"), fmt::format("nodes: there is no node {}: the cluster has {}, counted "
                                       "from 0",
                                       node, scenario_.cluster.nodes));
    }
  }

  void checkTimeLimit() {
    if (!command_.timeLimit || !findings_.usable({below("time_limit"), "limits.deadline"})) return;
    if (*command_.timeLimit <= scenario_.limits.deadline) return;
    fail(below("time_limit"),
         fmt::format("time_limit: {} is never reached: a run ends at its deadline of {}",
                     formatDuration(*command_.timeLimit),
                     formatDuration(scenario_.limits.deadline)));
  }

  void checkThroughput() {
    if (command_.throughput.empty() || command_.find(command_.throughput) != nullptr) return;
    if (!findings_.usable({below("metrics"), below("throughput")})) return;
    fail(below("throughput"),
         fmt::format("throughput: 'metrics' has no '{}'{}", command_.throughput,
                     didYouMean(command_.throughput, command_.metricNames())));
  }

  void checkPlaceholders() {
    const Cluster& cluster = scenario_.cluster;
    // How many rails are found is known later: a rail that is not there is told then.
    const bool railsKnown = cluster.railChoice.automatic || findings_.usable({"cluster.rails"});
    if (!railsKnown || !findings_.usable({"cluster", "cluster.nodes", kPath})) return;
    std::map<std::string, std::string> variables;
    for (const std::string& name : command::variableNames(cluster.nodes, mostRails(cluster))) {
      variables.emplace(name, name);
    }
    std::set<std::string> told;
    const auto look = [&](std::string_view path, std::string_view key, const std::string& text) {
      const auto expanded = command::expand(text, variables);
      if (expanded.ok() || !told.insert(expanded.status().message()).second) return;
      fail(path, fmt::format("{}: {}", key, expanded.status().message()));
    };
    for (const std::string& word : command_.run) look(below("run"), "run", word);
    for (const auto& [name, value] : command_.environment) look(below("env"), "env", value);
    look(below("workdir"), "workdir", command_.workingDirectory);
    for (const Strategy& strategy : scenario_.strategies) {
      for (const auto& [name, value] : strategy.environment) look("strategies", "env", value);
    }
  }

  void checkDuring(const Fault& fault, const std::string& path) {
    const During* const during = std::get_if<During>(&fault.trigger);
    if (during == nullptr || !findings_.usable({path})) return;
    if (command_.progress.empty()) {
      fail(path,
           "during: which iteration a program is in is known from the file that it writes: "
           "say which, with 'workload.command.progress', or write 'at'");
    } else if (during->iteration < 1) {
      fail(path,
           "during: progress is measured against the iterations before it, and iteration 0 "
           "has none: write 1 or more");
    }
  }

  const Scenario& scenario_;
  const command::Command& command_;
  const Node& root_;
  Findings& findings_;
};

}  // namespace

void checkCommand(const WorkloadChecking& checking) { CommandChecker(checking).check(); }

}  // namespace faultline::scenario
