#include "harness/scenario/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/units.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/fault_list.h"
#include "harness/scenario/fault_process_checks.h"
#include "harness/scenario/language_table.h"
#include "harness/scenario/record_reader.h"
#include "harness/scenario/row_option_checks.h"
#include "harness/scenario/schedule_reader.h"
#include "harness/scenario/site_checks.h"
#include "harness/scenario/strategy_checks.h"
#include "harness/scenario/verbs_checks.h"
#include "harness/scenario/workload_kind.h"
#include "harness/stats/overhead.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

class Checker {
 public:
  Checker(const Scenario& scenario, const Node& root, Findings& findings)
      : scenario_(scenario), kind_(*scenario.workload.kind), root_(root), findings_(findings) {}

  void check() {
    checkWorkloadKeys();
    checkRowOptions(scenario_, root_, findings_);
    if (kind_.check != nullptr) kind_.check({scenario_, root_, findings_});
    checkSite(scenario_, root_, findings_);
    checkVerbs(scenario_, root_, findings_);
    if (kind_.runsRanks) checkLimits();
    checkTime();
    checkNoise();
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
    checkStrategies(scenario_, root_, findings_);
    checkSchedules(scenario_, root_, findings_);
  }

 private:
  void fail(std::string_view path, std::string message) {
    findings_.add(locate(root_, path), std::move(message));
  }

  /// Keys that only another kind of workload has.
  void checkWorkloadKeys() {
    if (!findings_.usable({"workload.kind"})) return;
    const Node* const workload = root_.find("workload");
    if (workload == nullptr) return;
    for (const Field& field : workloadTable().fields) {
      const Node* const node = workload->find(field.spec.name);
      if (node == nullptr || hasWorkloadKey(kind_, field.spec.name)) continue;
      findings_.add(node->where,
                    fmt::format("{}: a workload of kind {} has none", field.spec.name, kind_.name));
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

  void checkNoise() {
    checkKeepAwake();
    checkAcrossBlocks();
    checkNoiseLimit();
  }

  void checkKeepAwake() {
    if (!scenario_.noise.keepAwake || !findings_.usable({"cluster", "noise"})) return;
    if (scenario_.cluster.kind->ownKernels) {
      fail("noise.keep_awake",
           fmt::format("keep_awake: the processors of nodes of a cluster of kind {} sleep as their "
                       "own kernels have it: write 'off'",
                       scenario_.cluster.kind->name));
    }
  }

  void checkAcrossBlocks() {
    const std::string path = "noise.across_blocks";
    if (!scenario_.noise.acrossBlocks || !findings_.usable({"strategies", "repeat", "noise"})) {
      return;
    }
    if (scenario_.noise.driftRuns > 0) {
      fail(path, "across_blocks: drift_check asks the same with runs of its own: choose one");
    }
    if (kind_.hasRequests) {
      fail(path,
           "across_blocks: each block of a server has other arrivals, so that its runs are not "
           "equal: use drift_check");
    }
    if (scenario_.find(std::string(baseline::kReferenceRow)) == nullptr) {
      fail(path, "across_blocks: there is no fault_free in 'strategies'");
    }
    if (scenario_.repeat < NoiseLimits::kMinBlocksAcross) {
      fail(path, fmt::format("across_blocks needs 'repeat' to be at least {}, not {}",
                             NoiseLimits::kMinBlocksAcross, scenario_.repeat));
    }
  }

  /// A limit of what equal runs differ by, where no two runs are held against each other. The usual
  /// one is no mistake: the JSON of a scenario has it always.
  void checkNoiseLimit() {
    const std::string path = "noise.void_above";
    const NoiseLimits& noise = scenario_.noise;
    if (!findings_.usable(
            {"strategies", "repeat", path, "noise.drift_check", "noise.across_blocks"})) {
      return;
    }
    const bool pairs = scenario_.secondFaultFree() != nullptr &&
                       static_cast<std::size_t>(scenario_.repeat) >= stats::kMinPairsForBand;
    if (noise.bandPercent == stats::kMaxBandPercent || noise.acrossBlocks ||
        noise.driftRuns >= NoiseLimits::kMinDriftRunsForSpread || pairs) {
      return;
    }
    fail(path, fmt::format("void_above: no equal runs are held against each other, so that it has "
                           "no effect: write 'drift_check: {}' or more{}, or add '{{{}: {{as: "
                           "again}}}}' to 'strategies' and give 'repeat' at least {}",
                           NoiseLimits::kMinDriftRunsForSpread,
                           kind_.hasRequests ? "" : ", or 'across_blocks: on'",
                           baseline::kReferenceRow, stats::kMinPairsForBand));
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
    } else if (fault.target->rank) {
      checkRank(*fault.target->rank, path + ".target.rank");
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

  void checkRank(int rank, const std::string& path) {
    if (!findings_.usable({path, "cluster", "workload"})) return;
    const int ranks = ranksOf(scenario_);
    if (rank < ranks) return;
    fail(path,
         !kind_.runsRanks
             ? fmt::format("rank: the bench starts {} processes, counted from 0. Those that a "
                           "program starts itself it does not tell apart: name the rank of "
                           "this program, or the 'node'",
                           ranks)
             : fmt::format("rank: there is no rank {}: the job has {}, counted from 0", rank,
                           ranks));
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
    if (!kind_.runsRanks) return;  // its iterations are its own
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
    if (kind_.whyNotDuring != nullptr) {
      const std::string why = kind_.whyNotDuring(workload, findings_);
      if (!why.empty()) fail(path + ".during", why);
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

  const Scenario& scenario_;
  const WorkloadKind& kind_;
  const Node& root_;
  Findings& findings_;
};

}  // namespace

void checkScenario(const Scenario& scenario, const Node& root, Findings& findings) {
  Checker(scenario, root, findings).check();
}

}  // namespace faultline::scenario
