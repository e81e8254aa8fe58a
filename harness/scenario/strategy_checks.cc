#include "harness/scenario/strategy_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/fault_list.h"
#include "harness/scenario/record_reader.h"
#include "harness/scenario/workload_kind.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

class StrategyChecker {
 public:
  StrategyChecker(const Scenario& scenario, const Node& root, Findings& findings)
      : scenario_(scenario), root_(root), findings_(findings) {}

  void check() {
    checkList();
    checkFaultsAreMet();
    checkSomethingRuns();
    checkReference();
  }

 private:
  void fail(std::string_view path, std::string message) {
    findings_.add(locate(root_, path), std::move(message));
  }

  /// Every element of the list of strategies is understood.
  bool strategiesAreKnown() const {
    const Node* const list = root_.find("strategies");
    for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
      if (!findings_.usable({fmt::format("strategies.{}", i)})) return false;
    }
    return findings_.usable({"strategies"});
  }

  void checkFaultsAreMet() {
    if (!scenario_.hasFaults() || !strategiesAreKnown()) return;
    if (!findings_.usable({"faults", "sequences", "fault_processes"})) return;
    for (const Strategy& strategy : scenario_.strategies) {
      const baseline::StrategySpec* const spec = baseline::findStrategy(strategy.kind());
      if (spec == nullptr || spec->meetsFaults) return;
    }
    fail("strategies",
         fmt::format("none of these strategies meets the faults: add one that does, "
                     "like {}, or remove '{}'",
                     baseline::usualStrategy(!scenario_.workload.kind->runsRanks).name,
                     !scenario_.faults.empty()      ? "faults"
                     : !scenario_.sequences.empty() ? "sequences"
                                                    : "fault_processes"));
  }

  void checkSomethingRuns() {
    if (scenario_.strategies.empty() || !strategiesAreKnown()) return;
    const bool computed = std::ranges::all_of(scenario_.strategies, [](const Strategy& strategy) {
      return baseline::isModelled(strategy.kind());
    });
    if (!computed) return;
    fail("strategies", fmt::format("all of these are modelled, and nothing would be run: add one "
                                   "that is executed, like {}",
                                   baseline::kReferenceRow));
  }

  void checkReference() {
    if (scenario_.workload.gradient.data != DataKind::kRandom) return;
    if (scenario_.find(std::string(baseline::kReferenceRow)) != nullptr) return;
    if (!findings_.usable({"workload.gradient.data"}) || !strategiesAreKnown()) return;
    fail("workload.gradient.data",
         fmt::format("data: random results are right when they equal those of {}: add it to "
                     "'strategies', or write 'data: integers'",
                     baseline::kReferenceRow));
  }

  /// Strategies that cannot be had with every scenario.
  void checkList() {
    const Node* const list = root_.find("strategies");
    for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
      const Node& item = list->items[i];
      const bool named = item.kind == Node::Kind::kMap && !item.entries.empty();
      const auto* const spec =
          baseline::findStrategy(named ? item.entries.front().key : std::string_view(item.text));
      if (spec == nullptr) continue;
      checkStrategy(*spec, named ? &item.entries.front().value : nullptr,
                    fmt::format("strategies.{}", i));
    }
  }

  /// Rows that only another kind of workload has.
  void checkSuits(const baseline::StrategySpec& spec, const std::string& path) {
    const Workload& workload = scenario_.workload;
    if (spec.workload.empty() || !workload.kind->runsRanks) return;
    if (!findings_.usable({"workload.kind"}) || spec.workload == workload.kind->name) return;
    fail(path, fmt::format("{}: only for 'workload: {{kind: {}}}'", spec.name, spec.workload));
  }

  void checkStrategy(const baseline::StrategySpec& spec, const Node* options,
                     const std::string& path) {
    checkSuits(spec, path);
    if (spec.losesRanks) checkShrink(spec.name, path);
    if (spec.leavesRanksOut) checkExcluding(spec.name, path);
    if (spec.hangOption.empty()) return;
    const std::string_view wait = spec.hangOption;
    const std::string waitPath = fmt::format("{}.{}.{}", path, spec.name, wait);
    const Node* const as =
        options == nullptr ? nullptr : options->find(baseline::rowNameSpec().name);
    const Strategy* const strategy =
        scenario_.find(as == nullptr ? std::string(spec.name) : as->text);
    if (strategy != nullptr && findings_.usable({waitPath})) checkWait(*strategy, wait, waitPath);
  }

  void checkShrink(std::string_view kind, const std::string& path) {
    const Workload& workload = scenario_.workload;
    if (!findings_.usable({"workload.kind", "workload.gradient.data"})) return;
    if (workload.kind->whyAllRanksAreNeeded == nullptr) return;
    const std::string why = workload.kind->whyAllRanksAreNeeded(workload);
    if (!why.empty()) fail(path, fmt::format("{}: {}", kind, why));
  }

  /// A rank is left out because its own port is down, which is seen at once, and only once.
  void checkExcluding(std::string_view kind, const std::string& path) {
    if (!scenario_.processes.empty() || !scenario_.sequences.empty()) {
      fail(path, fmt::format("{}: it goes on without ranks once, and 'fault_processes' and "
                             "'sequences' strike again: write the one fault under 'faults'",
                             kind));
    }
    for (const Fault& fault : scenario_.faults) {
      const std::string why = whyNobodyIsLeftOut(fault);
      if (why.empty()) continue;
      fail(path, fmt::format("{}: leaves out the ranks of a node with a port that is down, and {}",
                             kind, why));
      return;
    }
  }

  static std::string thoseThatTakeAPort() {
    std::vector<std::string_view> names;
    for (const injector::FaultKind& kind : injector::faultKinds()) {
      if (kind.portEvents == injector::PortEvents::kOnce) names.push_back(kind.name);
    }
    return join(names, " or ");
  }

  /// Empty: some ranks are left out, and some are left.
  std::string whyNobodyIsLeftOut(const Fault& fault) const {
    const injector::FaultKind* const spec = injector::findFaultKind(fault.kind);
    if (spec == nullptr || spec->target != injector::TargetKind::kLink) return "";
    if (spec->portEvents == injector::PortEvents::kAgain) {
      return fmt::format(
          "{} brings the port back again and again: whether anybody is left out "
          "would depend on the moment. Use {}",
          fault.kind, thoseThatTakeAPort());
    }
    if (spec->portEvents == injector::PortEvents::kBriefly) {
      return fmt::format(
          "{} takes the port down for a moment only: whether anybody is left out "
          "would depend on it. Use {}",
          fault.kind, thoseThatTakeAPort());
    }
    if (spec->portEvents == injector::PortEvents::kNever) {
      return fmt::format("{} leaves all ports up: nobody would know whom to leave out. Use {}",
                         fault.kind, thoseThatTakeAPort());
    }
    const Cluster& cluster = scenario_.cluster;
    const bool whole =
        fault.target && fault.target->part == Part::kRailGroup && findings_.usable({"cluster"});
    if (!whole || std::ssize(groupNodes(*fault.target, cluster)) < cluster.nodes) return "";
    return "this 'rail_group' is down at all nodes: no rank would be left. Name some of its "
           "'nodes'";
  }

  /// How long a job without resilience hangs before anything is done about it.
  void checkWait(const Strategy& strategy, std::string_view option, const std::string& path) {
    const Duration wait = strategy.options.get<Duration>(option);
    if (findings_.usable({"limits.deadline"}) && wait >= scenario_.limits.deadline) {
      fail(path, fmt::format("{}: {} never fires: a run ends at its deadline of {}", option,
                             formatDuration(wait), formatDuration(scenario_.limits.deadline)));
    }
    for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
      checkHang(strategy, option, path, scenario_.faults[i], fmt::format("faults.{}", i));
    }
    for (std::size_t i = 0; i < scenario_.sequences.size(); ++i) {
      const std::vector<Fault>& faults = scenario_.sequences[i].faults;
      for (std::size_t k = 0; k < faults.size(); ++k) {
        checkHang(strategy, option, path, faults[k], fmt::format("sequences.{}.faults.{}", i, k));
      }
    }
  }

  /// What a job without resilience is to hang from must last until that is seen.
  void checkHang(const Strategy& strategy, std::string_view option, const std::string& path,
                 const Fault& fault, const std::string& fault_path) {
    const Duration wait = strategy.options.get<Duration>(option);
    const injector::FaultKind* const kind = injector::findFaultKind(fault.kind);
    if (kind == nullptr || !(kind->cutsLink || kind->between) || !fault.duration) return;
    if (!findings_.usable({fault_path + ".duration"}) || wait < *fault.duration) return;
    fail(path,
         fmt::format("{}: {} is not shorter than the {} of {} ({}): what it breaks would be back "
                     "before the job is seen to hang",
                     option, formatDuration(wait), formatDuration(*fault.duration), fault.kind,
                     fault_path));
  }

  const Scenario& scenario_;
  const Node& root_;
  Findings& findings_;
};

}  // namespace

void checkStrategies(const Scenario& scenario, const Node& root, Findings& findings) {
  StrategyChecker(scenario, root, findings).check();
}

}  // namespace faultline::scenario
