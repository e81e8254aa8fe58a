#include "harness/scenario/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/units.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/command_checks.h"
#include "harness/scenario/fault_list.h"
#include "harness/scenario/fault_process_checks.h"
#include "harness/scenario/record_reader.h"

namespace faultline::scenario {
namespace {

class Checker {
 public:
  Checker(const Scenario& scenario, const Node& root, Findings& findings)
      : scenario_(scenario), root_(root), findings_(findings) {}

  void check() {
    checkGradient();
    checkWorkloadKeys();
    checkCommand(scenario_, root_, findings_);
    if (!scenario_.workload.isForeign()) checkLimits();
    checkTime();
    checkProcesses(scenario_, root_, findings_);
    for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
      const std::string path = fmt::format("faults.{}", i);
      if (!findings_.usable({path})) continue;
      checkTarget(scenario_.faults[i], path);
      checkTrigger(scenario_.faults[i], path);
      checkExtent(scenario_.faults[i], path);
      checkRepetition(scenario_.faults[i], path);
    }
    for (std::size_t i = 0; i < scenario_.sequences.size(); ++i) {
      checkSequence(scenario_.sequences[i], fmt::format("sequences.{}", i));
    }
    checkStrategies();
    checkFaultsAreMet();
    checkSomethingRuns();
    checkReference();
  }

 private:
  void fail(std::string_view path, std::string message) {
    findings_.add(locate(root_, path), std::move(message));
  }

  void checkGradient() {
    const Gradient& gradient = scenario_.workload.gradient;
    if (!findings_.usable({"workload.gradient.size", "workload.gradient.dtype"})) return;
    const Bytes element = sizeOf(gradient.dtype);
    if (gradient.size % element != 0) {
      fail("workload.gradient.size",
           fmt::format("size: {} is not a whole number of elements of {} bytes",
                       formatSize(gradient.size), element));
      return;
    }
    if (!findings_.usable({"workload.gradient.buckets"})) return;
    const Bytes elements = gradient.size / element;
    if (elements > 0 && gradient.buckets > elements) {
      fail("workload.gradient.buckets",
           fmt::format("buckets: {} are too many for {} ({} elements)", gradient.buckets,
                       formatSize(gradient.size), elements));
    }
  }

  /// Keys that only another kind of workload has.
  void checkWorkloadKeys() {
    if (!findings_.usable({"workload.kind"})) return;
    const Node* const workload = root_.find("workload");
    if (workload == nullptr) return;
    const bool sweeps = scenario_.workload.sweeps();
    const bool foreign = scenario_.workload.isForeign();
    const bool serves = scenario_.workload.serves();
    const bool trains = !sweeps && !foreign && !serves;
    const std::pair<std::string_view, bool> keys[] = {{"compute", trains},
                                                      {"gradient", trains},
                                                      {"model", trains || serves},
                                                      {"device", trains || serves},
                                                      {"parallel", trains || serves},
                                                      {"micro_batches", trains},
                                                      {"micro_batch", trains},
                                                      {"sequence", trains},
                                                      {"scale", trains || serves},
                                                      {"collective", sweeps},
                                                      {"command", foreign},
                                                      {"inference", serves},
                                                      {"iterations", !foreign && !serves},
                                                      {"warmup_iterations", !foreign},
                                                      {"time", !foreign && !serves}};
    for (const auto& [key, its] : keys) {
      const Node* const node = workload->find(key);
      if (node == nullptr || its) continue;
      findings_.add(node->where, fmt::format("{}: a workload of kind {} has none", key,
                                             scenario_.workload.kind));
    }
  }

  void checkLimits() {
    if (findings_.usable({"limits.hold_off", "limits.longest_hold_off"}) &&
        scenario_.limits.longestHoldOff < scenario_.limits.holdOff) {
      fail("limits.longest_hold_off",
           fmt::format("longest_hold_off: {} is shorter than the first one, hold_off: {}",
                       formatDuration(scenario_.limits.longestHoldOff),
                       formatDuration(scenario_.limits.holdOff)));
    }
    if (findings_.usable(
            {"limits.return_probe_interval", "limits.longest_return_probe_interval"}) &&
        scenario_.limits.longestReturnProbeInterval < scenario_.limits.returnProbeInterval) {
      fail("limits.longest_return_probe_interval",
           fmt::format("longest_return_probe_interval: {} is shorter than the first one, "
                       "return_probe_interval: {}",
                       formatDuration(scenario_.limits.longestReturnProbeInterval),
                       formatDuration(scenario_.limits.returnProbeInterval)));
    }
    if (findings_.usable({"limits.idle_probe_interval", "limits.give_up"}) &&
        2 * scenario_.limits.idleProbeInterval > scenario_.limits.giveUp) {
      fail("limits.idle_probe_interval",
           fmt::format("idle_probe_interval: {} lets no rank be heard twice within give_up: {}",
                       formatDuration(scenario_.limits.idleProbeInterval),
                       formatDuration(scenario_.limits.giveUp)));
    }
    if (findings_.usable({"limits.suspect_after", "limits.give_up"}) &&
        scenario_.limits.suspectAfter >= scenario_.limits.giveUp) {
      fail("limits.suspect_after",
           fmt::format("suspect_after: {} is never reached: the job is given up after give_up: {}",
                       formatDuration(scenario_.limits.suspectAfter),
                       formatDuration(scenario_.limits.giveUp)));
    }
    if (!findings_.usable({"limits.deadline", "limits.give_up"})) return;
    const Limits& limits = scenario_.limits;
    if (limits.giveUp < limits.deadline) return;
    fail("limits.give_up",
         fmt::format("give_up: {} is never reached: a run ends at its deadline of {}",
                     formatDuration(limits.giveUp), formatDuration(limits.deadline)));
  }

  void checkTime() {
    const std::string path = "workload.time";
    const Workload& workload = scenario_.workload;
    if (!workload.time || !findings_.usable({path})) return;
    if (findings_.usable({"limits.deadline"}) && *workload.time >= scenario_.limits.deadline) {
      fail(path,
           fmt::format("time: {} is never over: a run ends at its deadline of {}",
                       formatDuration(*workload.time), formatDuration(scenario_.limits.deadline)));
    }
    if (workload.gradient.data == DataKind::kRandom &&
        findings_.usable({"workload.gradient.data"})) {
      fail(path,
           "time: with 'data: random' the digests of runs are compared, which must have done the "
           "same work: write 'data: integers', or only 'iterations'");
    }
  }

  void checkSequence(const Sequence& sequence, const std::string& path) {
    for (std::size_t i = 0; i < sequence.faults.size(); ++i) {
      const std::string inside = fmt::format("{}.faults.{}", path, i);
      if (!findings_.usable({inside})) return;
      checkTarget(sequence.faults[i], inside);
      checkTrigger(sequence.faults[i], inside);
      checkExtent(sequence.faults[i], inside);
    }
    if (!findings_.usable({path, "limits.deadline"})) return;
    const auto end = earliestEnd(sequence);
    if (!end || *end < scenario_.limits.deadline) return;
    fail(path, fmt::format("the last of these faults is over after {} at the earliest, and a run "
                           "ends at its deadline of {}",
                           formatDuration(*end), formatDuration(scenario_.limits.deadline)));
  }

  /// A rail at all nodes that is the only one.
  void checkOutage(const Fault& fault, const std::string& path) {
    const Cluster& cluster = scenario_.cluster;
    const injector::FaultKind* const kind = injector::findFaultKind(fault.kind);
    if (cluster.rails > 1 || kind == nullptr || !kind->cutsLink) return;
    if (groupNodes(*fault.target, cluster).size() + 1 < static_cast<std::size_t>(cluster.nodes)) {
      return;
    }
    if (!findings_.usable({"cluster", "limits.give_up", path + ".duration", "expect"})) return;
    if (fault.duration && *fault.duration < scenario_.limits.giveUp) return;
    const bool end_is_expected = std::ranges::any_of(
        scenario_.expect, [](const Expectation& one) { return one.metric == "status"; });
    if (end_is_expected) return;
    fail(
        path + ".target.rail_group",
        fmt::format("rail_group: this is the only rail, and it is gone for {}: every rank gives up "
                    "after give_up: {}. Make the fault shorter, or say in 'expect' which status "
                    "the runs end with",
                    fault.duration ? formatDuration(*fault.duration) : "the rest of the run",
                    formatDuration(scenario_.limits.giveUp)));
  }

  void checkTarget(const Fault& fault, const std::string& path) {
    const Cluster& cluster = scenario_.cluster;
    if (!fault.target) return;
    if (fault.target->part == Part::kRailGroup) {
      for (const int node : fault.target->nodes) {
        checkIndex(node, cluster.nodes, path + ".target.nodes", "cluster.nodes", "node");
      }
      checkIndex(fault.target->rail, cluster.rails, path + ".target.rail_group", "cluster.rails",
                 "rail");
      checkOutage(fault, path);
    } else {
      checkIndex(fault.target->node, cluster.nodes, path + ".target.node", "cluster.nodes", "node");
    }
    if (fault.target->part == Part::kRail) {
      checkIndex(fault.target->rail, cluster.rails, path + ".target.rail", "cluster.rails", "rail");
    }
    if (fault.target->peer) checkPeer(fault, path);
    if (cluster.nodes < 2 && findings_.usable({"cluster.nodes"})) {
      fail(path, "a cluster of one node moves no data over its rails: no fault has an effect");
    }
  }

  void checkPeer(const Fault& fault, const std::string& path) {
    const int peer = *fault.target->peer;
    const std::string peer_path = path + ".target.peer";
    checkIndex(peer, scenario_.cluster.nodes, peer_path, "cluster.nodes", "node");
    if (peer == fault.target->node) fail(peer_path, "peer: there is no path from a node to itself");
    if (scenario_.cluster.nodes < 3 && findings_.usable({"cluster.nodes"})) {
      fail(path, fmt::format("{}: with two nodes nobody can tell a path from a link: the cluster "
                             "needs at least 3",
                             fault.kind));
    }
  }

  void checkIndex(int index, int count, const std::string& path, std::string_view count_path,
                  std::string_view what) {
    if (index < count || !findings_.usable({path, count_path})) return;
    fail(path, fmt::format("{}: there is no {} {}: the cluster has {}, counted from 0", what, what,
                           index, count));
  }

  void checkTrigger(const Fault& fault, const std::string& path) {
    const Workload& workload = scenario_.workload;
    if (const At* at = std::get_if<At>(&fault.trigger)) {
      if (!findings_.usable({path + ".at", "limits.deadline"})) return;
      if (at->time < scenario_.limits.deadline) return;
      fail(path + ".at",
           fmt::format("at: {} is never reached: a run ends at its deadline of {}",
                       formatDuration(at->time), formatDuration(scenario_.limits.deadline)));
      return;
    }
    const During* const bytes = std::get_if<During>(&fault.trigger);
    if (bytes == nullptr) return;
    const During& during = *bytes;
    if (!findings_.usable({path + ".during"})) return;
    const injector::FaultKind* const kind = injector::findFaultKind(fault.kind);
    if (!fault.target && kind != nullptr && kind->target == injector::TargetKind::kNone) {
      fail(path + ".during",
           "during: progress is measured on the rails of a target node: add 'target'");
    }
    if (workload.isForeign()) return;  // its iterations are its own
    const std::string iteration_path = path + ".during.iteration";
    if (findings_.usable({iteration_path, "workload.iterations"}) &&
        during.iteration >= workload.iterations) {
      fail(iteration_path, fmt::format("iteration: there is no iteration {}: the workload has {}, "
                                       "counted from 0",
                                       during.iteration, workload.iterations));
    }
    if (workload.warmupIterations < 1 && findings_.usable({"workload.warmup_iterations"})) {
      fail(path + ".during",
           "during: progress is measured against the warm-up, and there is none: give "
           "'workload.warmup_iterations' at least 1");
    }
    if (workload.sweeps() && findings_.usable({"workload.collective"}) &&
        cellsOf(workload.collective).size() > 1) {
      fail(path + ".during",
           "during: progress is measured against the warm-up, and the calls of this workload "
           "differ: give it one operation, size, type, operator and place, or write 'at'");
    }
    if (workload.gradient.size == 0 && findings_.usable({"workload.gradient.size"})) {
      fail(path + ".during", "during: a gradient of size 0 makes no progress that could be met");
    }
  }

  void checkExtent(const Fault& fault, const std::string& path) {
    if (!findings_.usable({path + ".duration", "limits.deadline"}) || !fault.duration) return;
    if (*fault.duration < scenario_.limits.deadline) return;
    fail(path + ".duration",
         fmt::format("duration: {} is longer than a run, which ends at its deadline of {}: write "
                     "'until: end' if that is meant",
                     formatDuration(*fault.duration), formatDuration(scenario_.limits.deadline)));
  }

  /// Repetitions that cannot all happen.
  void checkRepetition(const Fault& fault, const std::string& path) {
    if (fault.times < 2 || !fault.duration) return;
    if (!findings_.usable({path + ".every", path + ".times", path + ".duration"})) return;
    if (fault.every <= *fault.duration) {
      fail(path + ".every",
           fmt::format("every: {} is not longer than the fault, which lasts {}: it must be undone "
                       "before it strikes again",
                       formatDuration(fault.every), formatDuration(*fault.duration)));
      return;
    }
    if (!findings_.usable({"limits.deadline"})) return;
    // Without overflow: at most 10,000 times an hour.
    const Duration last = (fault.times - 1) * fault.every;
    const At* const at = std::get_if<At>(&fault.trigger);
    const Duration begin = at == nullptr ? Duration::zero() : at->time;
    if (begin + last < scenario_.limits.deadline) return;
    fail(path + ".times",
         fmt::format("times: the last of {} comes after {}, and a run ends at its deadline of {}",
                     fault.times, formatDuration(begin + last),
                     formatDuration(scenario_.limits.deadline)));
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
                     scenario_.workload.isForeign() ? baseline::kUnprotected : baseline::kHotRepair,
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
                                   baseline::kFaultFree));
  }

  void checkReference() {
    if (scenario_.workload.gradient.data != DataKind::kRandom) return;
    if (scenario_.find(std::string(baseline::kFaultFree)) != nullptr) return;
    if (!findings_.usable({"workload.gradient.data"}) || !strategiesAreKnown()) return;
    fail("workload.gradient.data",
         fmt::format("data: random results are right when they equal those of {}: add it to "
                     "'strategies', or write 'data: integers'",
                     baseline::kFaultFree));
  }

  /// Strategies that cannot be had with every scenario.
  void checkStrategies() {
    const Node* const list = root_.find("strategies");
    for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
      const Node& item = list->items[i];
      checkSuits(item, fmt::format("strategies.{}", i));
      for (const std::string_view kind :
           {baseline::kShrink, baseline::kExcludeRank, baseline::kFailStop}) {
        const Node* const options = item.find(kind);
        if (item.text == kind || options != nullptr) {
          checkStrategy(kind, options, fmt::format("strategies.{}", i));
        }
      }
    }
  }

  /// Rows that only another kind of workload has.
  void checkSuits(const Node& item, const std::string& path) {
    const bool named = item.kind == Node::Kind::kMap && !item.entries.empty();
    const auto* const spec =
        baseline::findStrategy(named ? item.entries.front().key : std::string_view(item.text));
    const Workload& workload = scenario_.workload;
    if (spec == nullptr || spec->workload.empty() || workload.isForeign()) return;
    if (!findings_.usable({"workload.kind"}) || spec->workload == workload.kind) return;
    fail(path, fmt::format("{}: only for 'workload: {{kind: {}}}'", spec->name, spec->workload));
  }

  void checkStrategy(std::string_view kind, const Node* options, const std::string& path) {
    if (baseline::losesRanks(kind)) checkShrink(kind, path);
    if (kind == baseline::kExcludeRank) checkExcluding(path);
    if (kind == baseline::kShrink) return;
    const std::string_view wait = kind == baseline::kFailStop ? "watchdog" : baseline::kWait;
    const std::string waitPath = fmt::format("{}.{}.{}", path, kind, wait);
    const Node* const as =
        options == nullptr ? nullptr : options->find(baseline::rowNameSpec().name);
    const Strategy* const strategy = scenario_.find(as == nullptr ? std::string(kind) : as->text);
    if (strategy != nullptr && findings_.usable({waitPath})) checkWait(*strategy, wait, waitPath);
  }

  void checkShrink(std::string_view kind, const std::string& path) {
    const Workload& workload = scenario_.workload;
    if (!findings_.usable({"workload.kind", "workload.gradient.data"})) return;
    if (workload.serves()) {
      fail(path, fmt::format("{}: each rank of a server has a part of the model that no other one "
                             "has: use {}, which serves again what was under way",
                             kind, baseline::kFailStop));
    } else if (workload.sweeps()) {
      fail(path,
           fmt::format("{}: a sweep is of all ranks: use 'workload: {{kind: training}}'", kind));
    } else if (workload.model && !workload.model->onlyCopies()) {
      fail(path,
           fmt::format("{}: each rank has a part of the model that no other one has; it needs "
                       "'parallel' with nothing but 'data', and without 'zero'",
                       kind));
    } else if (workload.gradient.data == DataKind::kRandom) {
      fail(path, fmt::format("{}: results of fewer ranks differ from those of {}: write 'data: "
                             "integers', of which every element is checked",
                             kind, baseline::kFaultFree));
    }
  }

  /// A rank is left out because its own port is down, which is seen at once, and only once.
  void checkExcluding(const std::string& path) {
    const std::string_view kind = baseline::kExcludeRank;
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

  /// Empty: some ranks are left out, and some are left.
  std::string whyNobodyIsLeftOut(const Fault& fault) const {
    const injector::FaultKind* const spec = injector::findFaultKind(fault.kind);
    if (spec == nullptr || spec->target != injector::TargetKind::kLink) return "";
    if (fault.kind == "port_flap") {
      return "port_flap brings the port back again and again: whether anybody is left out would "
             "depend on the moment. Use port_down";
    }
    if (fault.kind != "port_down") {
      return fmt::format(
          "{} leaves all ports up: nobody would know whom to leave out. Use "
          "port_down",
          fault.kind);
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

void checkScenario(const Scenario& scenario, const Node& root, Findings& findings) {
  Checker(scenario, root, findings).check();
}

}  // namespace faultline::scenario
