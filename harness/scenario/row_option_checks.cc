#include "harness/scenario/row_option_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "harness/baseline/strategy_table.h"
#include "harness/scenario/workload_kind.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

class RowOptionChecker {
 public:
  RowOptionChecker(const Scenario& scenario, const Node& root, Findings& findings)
      : scenario_(scenario), root_(root), findings_(findings) {}

  /// What the kind of workload allows of strategies and of their options.
  void check() {
    const Node* const list = root_.find("strategies");
    const bool foreign = !scenario_.workload.kind->runsRanks;
    for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
      const Node& item = list->items[i];
      const std::string path = fmt::format("strategies.{}", i);
      const bool named = item.kind == Node::Kind::kMap && !item.entries.empty();
      const std::string& kind = named ? item.entries.front().key : item.text;
      const baseline::StrategySpec* const spec = baseline::findStrategy(kind);
      if (!findings_.usable({path}) || spec == nullptr) continue;
      if (foreign && !spec->suitsForeign) {
        fail(path, fmt::format("{} needs ranks that are ours: a workload of kind {} knows {}", kind,
                               scenario_.workload.kind->name,
                               baseline::namesOf([](const baseline::StrategySpec& one) {
                                 return one.suitsForeign;
                               })));
      }
      if (named) checkOptions(item.entries.front().value, *spec, foreign);
      if (named && spec->setsUpNccl) checkNccl(item.entries.front().value);
    }
  }

 private:
  void fail(std::string_view path, std::string message) {
    findings_.add(locate(root_, path), std::move(message));
  }

  void checkOptions(const Node& options, const baseline::StrategySpec& spec, bool foreign) {
    for (const Entry& option : options.entries) {
      const bool env = option.key == baseline::rowEnvironmentSpec().name;
      const bool name = option.key == baseline::rowNameSpec().name;
      const bool its =
          spec.setsUpNccl && (option.key == baseline::kMode || option.key == baseline::kWait);
      if (name || its || env == foreign) continue;
      findings_.add(option.where,
                    env ? fmt::format("env: only the programs of a workload of kind {} have one",
                                      workloadWith(&WorkloadKind::runsRanks, false))
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

  const Scenario& scenario_;
  const Node& root_;
  Findings& findings_;
};

}  // namespace

void checkRowOptions(const Scenario& scenario, const Node& root, Findings& findings) {
  RowOptionChecker(scenario, root, findings).check();
}

}  // namespace faultline::scenario
