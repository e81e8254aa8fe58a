#include "harness/scenario/command_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/text.h"
#include "base/units.h"
#include "harness/baseline/strategy_table.h"
#include "harness/command/variables.h"
#include "harness/scenario/record_reader.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

constexpr std::string_view kPath = "workload.command";

class CommandChecker {
 public:
  CommandChecker(const Scenario& scenario, const Node& root, Findings& findings)
      : scenario_(scenario),
        command_(scenario.workload.command),
        root_(root),
        findings_(findings) {}

  void check() {
    checkRows();
    if (!scenario_.workload.isForeign()) return;
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

  /// What the kind of workload allows of strategies and of their options.
  void checkRows() {
    const Node* const list = root_.find("strategies");
    const bool foreign = scenario_.workload.isForeign();
    for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
      const Node& item = list->items[i];
      const std::string path = fmt::format("strategies.{}", i);
      const bool named = item.kind == Node::Kind::kMap && !item.entries.empty();
      const std::string& kind = named ? item.entries.front().key : item.text;
      const baseline::StrategySpec* const spec = baseline::findStrategy(kind);
      if (!findings_.usable({path}) || spec == nullptr) continue;
      if (foreign && !spec->suitsForeign) {
        fail(path, fmt::format("{} needs ranks that are ours: a workload of kind command knows {}",
                               kind, baseline::namesOf([](const baseline::StrategySpec& one) {
                                 return one.suitsForeign;
                               })));
      }
      if (named) checkOptions(item.entries.front().value, *spec, foreign);
      if (named && spec->setsUpNccl) checkNccl(item.entries.front().value);
    }
  }

  void checkOptions(const Node& options, const baseline::StrategySpec& spec, bool foreign) {
    for (const Entry& option : options.entries) {
      const bool env = option.key == baseline::rowEnvironmentSpec().name;
      const bool name = option.key == baseline::rowNameSpec().name;
      const bool its =
          spec.setsUpNccl && (option.key == baseline::kMode || option.key == baseline::kWait);
      if (name || its || env == foreign) continue;
      findings_.add(option.where,
                    env ? "env: only the programs of a workload of kind command have one"
                        : fmt::format("{}: {} has none for programs that are not ours: 'as' and "
                                      "'env' are possible",
                                      option.key, spec.name));
    }
  }

  /// A row of a way to meet faults says nothing of it where there is none that it could meet.
  void checkNccl(const Node& options) {
    const Node* const mode = options.find(baseline::kMode);
    const std::string kind = mode == nullptr ? std::string(baseline::kStock) : mode->text;
    const bool rebuilds = baseline::rebuildsItself(kind);
    if (const Node* const wait = options.find(baseline::kWait); wait != nullptr && !rebuilds) {
      findings_.add(wait->where, fmt::format("wait: only of the modes {} and {}, in which the "
                                             "program itself gives a communicator up",
                                             baseline::kAbortReinit, baseline::kShrinkMode));
    }
    if (!rebuilds && kind != baseline::kPortFailover) return;
    if (!findings_.usable({"faults", "sequences", "fault_processes"})) return;
    if (!scenario_.hasFaults()) {
      findings_.add(mode->where,
                    fmt::format("mode: {} has nothing to {} from: add a fault of a link, or write "
                                "{}",
                                kind, rebuilds ? "recover" : "fail over", baseline::kStock));
    }
    if (kind == baseline::kAbortReinit && kills()) {
      findings_.add(mode->where,
                    fmt::format("mode: {} goes on with all ranks, and nobody starts a process "
                                "again that was killed: write {}",
                                kind, baseline::kShrinkMode));
    }
  }

  /// Whether a fault of the scenario kills processes.
  bool kills() const {
    const auto ends = [](std::string_view name) {
      const injector::FaultKind* const kind = injector::findFaultKind(name);
      return kind != nullptr && kind->endsProcesses;
    };
    const auto killsOne = [&](const Fault& fault) { return ends(fault.kind); };
    return std::ranges::any_of(scenario_.faults, killsOne) ||
           std::ranges::any_of(scenario_.sequences,
                               [&](const Sequence& sequence) {
                                 return std::ranges::any_of(sequence.faults, killsOne);
                               }) ||
           std::ranges::any_of(scenario_.processes, [&](const FaultProcess& process) {
             return std::ranges::any_of(
                 process.kinds, [&](const FaultProcess::Kind& kind) { return ends(kind.name); });
           });
  }

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
    if (!findings_.usable({"cluster", "cluster.nodes", "cluster.rails", kPath})) return;
    std::map<std::string, std::string> variables;
    for (const std::string& name :
         command::variableNames(scenario_.cluster.nodes, scenario_.cluster.rails)) {
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

void checkCommand(const Scenario& scenario, const Node& root, Findings& findings) {
  CommandChecker(scenario, root, findings).check();
}

}  // namespace faultline::scenario
