#include "harness/scenario/checks.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/units.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/command_checks.h"
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
    checkChaos();
    for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
      const std::string path = fmt::format("faults.{}", i);
      if (!findings_.usable({path})) continue;
      checkTarget(scenario_.faults[i], path);
      checkTrigger(scenario_.faults[i], path);
      checkExtent(scenario_.faults[i], path);
      checkRepetition(scenario_.faults[i], path);
    }
    checkStrategies();
    checkFaultsAreMet();
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

  void checkChaos() {
    if (!scenario_.chaos || !findings_.usable({"chaos"})) return;
    const Chaos& chaos = *scenario_.chaos;
    if (findings_.usable({"chaos.shortest", "chaos.longest"}) && chaos.longest < chaos.shortest) {
      fail("chaos.longest",
           fmt::format("longest: {} is less than shortest: {}", formatDuration(chaos.longest),
                       formatDuration(chaos.shortest)));
    }
    if (findings_.usable({"chaos.spare_rails", "cluster.rails"}) &&
        chaos.spareRails >= scenario_.cluster.rails) {
      fail("chaos.spare_rails",
           fmt::format("spare_rails: of {} rails {} are to be whole: none is left to be struck",
                       scenario_.cluster.rails, chaos.spareRails));
    }
    if (scenario_.cluster.nodes < 2 && findings_.usable({"cluster.nodes"})) {
      fail("chaos", "a cluster of one node moves no data over its rails: no fault has an effect");
    }
    if (!findings_.usable({"chaos.for", "chaos.longest", "limits.deadline", "workload.time"})) {
      return;
    }
    const auto refuse = [&](std::string why) {
      fail("chaos.for", fmt::format("for: {} {}", formatDuration(chaos.length), why));
    };
    const auto& time = scenario_.workload.time;
    if (chaos.length < chaos.longest) {
      refuse(fmt::format("is too short for a strike of {}", formatDuration(chaos.longest)));
    } else if (chaos.length >= scenario_.limits.deadline) {
      refuse(fmt::format("is not over when the run ends, at its deadline of {}",
                         formatDuration(scenario_.limits.deadline)));
    } else if (time && chaos.length >= *time) {
      refuse(fmt::format("is not over when the work ends, after workload.time: {}",
                         formatDuration(*time)));
    }
  }

  void checkTarget(const Fault& fault, const std::string& path) {
    const Cluster& cluster = scenario_.cluster;
    if (!fault.target) return;
    checkIndex(fault.target->node, cluster.nodes, path + ".target.node", "cluster.nodes", "node");
    if (fault.target->part == Part::kRail) {
      checkIndex(fault.target->rail, cluster.rails, path + ".target.rail", "cluster.rails", "rail");
    }
    if (cluster.nodes < 2 && findings_.usable({"cluster.nodes"})) {
      fail(path, "a cluster of one node moves no data over its rails: no fault has an effect");
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
    if (std::holds_alternative<BeforeStart>(fault.trigger)) return;
    const During& during = std::get<During>(fault.trigger);
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
    const bool none = scenario_.faults.empty() && !scenario_.chaos;
    if (none || !findings_.usable({"faults", "chaos"}) || !strategiesAreKnown()) return;
    for (const Strategy& strategy : scenario_.strategies) {
      const baseline::StrategySpec* const spec = baseline::findStrategy(strategy.kind());
      if (spec == nullptr || spec->meetsFaults) return;
    }
    fail("strategies",
         fmt::format("none of these strategies meets the faults: add one that does, "
                     "like {}, or remove '{}'",
                     scenario_.workload.isForeign() ? baseline::kUnprotected : baseline::kHotRepair,
                     scenario_.faults.empty() ? "chaos" : "faults"));
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

  void checkStrategies() {
    const Node* const list = root_.find("strategies");
    for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
      if (list->items[i].text == baseline::kShrink || list->items[i].find(baseline::kShrink)) {
        checkShrink(fmt::format("strategies.{}", i));
      }
      const std::string path = fmt::format("strategies.{}.{}.watchdog", i, baseline::kFailStop);
      const Node& item = list->items[i];
      const Node* const options = item.find(baseline::kFailStop);
      if (item.text != baseline::kFailStop && options == nullptr) continue;
      const Node* const as =
          options == nullptr ? nullptr : options->find(baseline::rowNameSpec().name);
      const Strategy* const strategy =
          scenario_.find(as == nullptr ? std::string(baseline::kFailStop) : as->text);
      if (strategy != nullptr && findings_.usable({path})) checkFailStop(*strategy, path);
    }
  }

  void checkShrink(const std::string& path) {
    const Workload& workload = scenario_.workload;
    if (!findings_.usable({"workload.kind", "workload.gradient.data"})) return;
    if (workload.serves()) {
      fail(path, fmt::format("{}: each rank of a server has a part of the model that no other one "
                             "has: use {}, which serves again what was under way",
                             baseline::kShrink, baseline::kFailStop));
    } else if (workload.sweeps()) {
      fail(path, fmt::format("{}: a sweep is of all ranks: use 'workload: {{kind: training}}'",
                             baseline::kShrink));
    } else if (workload.model && !workload.model->onlyCopies()) {
      fail(path,
           fmt::format("{}: each rank has a part of the model that no other one has; it needs "
                       "'parallel' with nothing but 'data', and without 'zero'",
                       baseline::kShrink));
    } else if (workload.gradient.data == DataKind::kRandom) {
      fail(path, fmt::format("{}: results of fewer ranks differ from those of {}: write 'data: "
                             "integers', of which every element is checked",
                             baseline::kShrink, baseline::kFaultFree));
    }
  }

  void checkFailStop(const Strategy& strategy, const std::string& path) {
    const Duration watchdog = strategy.options.get<Duration>("watchdog");
    if (findings_.usable({"limits.deadline"}) && watchdog >= scenario_.limits.deadline) {
      fail(path, fmt::format("watchdog: {} never fires: a run ends at its deadline of {}",
                             formatDuration(watchdog), formatDuration(scenario_.limits.deadline)));
    }
    for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
      const Fault& fault = scenario_.faults[i];
      const std::string duration_path = fmt::format("faults.{}.duration", i);
      const injector::FaultKind* const kind = injector::findFaultKind(fault.kind);
      if (kind == nullptr || !kind->cutsLink || !fault.duration) continue;
      if (!findings_.usable({duration_path}) || watchdog < *fault.duration) continue;
      fail(path,
           fmt::format("watchdog: {} is not shorter than the {} of {} (faults.{}): the link "
                       "would be back before the job is seen to hang",
                       formatDuration(watchdog), formatDuration(*fault.duration), fault.kind, i));
    }
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
