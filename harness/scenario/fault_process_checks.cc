#include "harness/scenario/fault_process_checks.h"

#include <fmt/format.h>

#include <string>

#include "harness/scenario/fault_process.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

// As often as a fault that is written down may strike.
constexpr double kMostFaults = 10'000;

class ProcessChecker {
 public:
  ProcessChecker(const Scenario& scenario, std::size_t index, const Node& root, Findings& findings)
      : scenario_(scenario),
        process_(scenario.processes[index]),
        path_(fmt::format("fault_processes.{}", index)),
        root_(root),
        findings_(findings) {}

  void check() {
    checkPlaces("nodes", process_.nodes, scenario_.cluster.nodes);
    checkPlaces("rails", process_.rails, scenario_.cluster.rails);
    checkKinds();
    if (scenario_.cluster.nodes < 2 && findings_.usable({"cluster.nodes"})) {
      fail("", "a cluster of one node moves no data over its rails: no fault has an effect");
    }
    if (usable("spare_rails") && findings_.usable({"cluster.rails"}) &&
        process_.spareRails >= scenario_.cluster.rails) {
      fail("spare_rails",
           fmt::format("spare_rails: of {} rails {} are to be whole: none is left to be struck",
                       scenario_.cluster.rails, process_.spareRails));
    }
    if (usable("mttr") && usable("accelerate") && usable("shortest")) checkRepairs();
    if (usable("for")) checkLength();
    if (usable("mtbf") && usable("accelerate") && usable("for")) checkNumber();
  }

 private:
  bool usable(std::string_view key) const {
    return findings_.usable({path_ + "." + std::string(key)});
  }
  void fail(const std::string& key, std::string message) {
    findings_.add(locate(root_, key.empty() ? path_ : path_ + "." + key), std::move(message));
  }

  void checkPlaces(const std::string& key, const std::vector<int>& places, int count) {
    if (!usable(key) || !findings_.usable({"cluster." + key})) return;
    for (const int place : places) {
      if (place < count) continue;
      fail(key,
           fmt::format("{}: the cluster has no {}: it has {}, counted from 0", key, place, count));
    }
  }

  void checkKinds() {
    if (!usable("kinds") || process_.per != FaultProcess::Element::kRail) return;
    for (std::size_t i = 0; i < process_.kinds.size(); ++i) {
      const injector::FaultKind* const kind = injector::findFaultKind(process_.kinds[i].name);
      if (kind == nullptr || kind->ofWholeRails) continue;
      fail(fmt::format("kinds.{}", i),
           fmt::format("{} cannot strike a whole rail: write 'per: nic'", kind->name));
    }
  }

  void checkRepairs() {
    const double mean = toSeconds(process_.repairs.mean) / process_.accelerate;
    if (mean >= toSeconds(process_.shortest)) return;
    fail("mttr",
         fmt::format("mttr: {} is {:.3g} ms here, and no fault is shorter than shortest: {}: "
                     "the repairs would not be those that were asked for",
                     formatDuration(process_.repairs.mean), mean * 1000,
                     formatDuration(process_.shortest)));
  }

  void checkLength() {
    const auto refuse = [&](std::string why) {
      fail("for", fmt::format("for: {} {}", formatDuration(process_.length), why));
    };
    const auto& time = scenario_.workload.time;
    if (usable("shortest") && process_.length < process_.shortest) {
      refuse(fmt::format("is too short for a fault of {}", formatDuration(process_.shortest)));
    } else if (findings_.usable({"limits.deadline"}) &&
               process_.length >= scenario_.limits.deadline) {
      refuse(fmt::format("is not over when the run ends, at its deadline of {}",
                         formatDuration(scenario_.limits.deadline)));
    } else if (time && findings_.usable({"workload.time"}) && process_.length >= *time) {
      refuse(fmt::format("is not over when the work ends, after workload.time: {}",
                         formatDuration(*time)));
    }
  }

  void checkNumber() {
    const double each =
        toSeconds(process_.length) * process_.accelerate / toSeconds(process_.failures.mean);
    const double all = each * elementsOf(process_, scenario_.cluster);
    if (all <= kMostFaults) return;
    fail("mtbf", fmt::format("mtbf: {} makes {:.0f} failures here; up to {:.0f} are possible",
                             formatDuration(process_.failures.mean), all, kMostFaults));
  }

  const Scenario& scenario_;
  const FaultProcess& process_;
  const std::string path_;
  const Node& root_;
  Findings& findings_;
};

}  // namespace

void checkProcesses(const Scenario& scenario, const Node& root, Findings& findings) {
  for (std::size_t i = 0; i < scenario.processes.size(); ++i) {
    ProcessChecker(scenario, i, root, findings).check();
  }
  // Nothing can be said of the faults of a scenario that is wrong.
  if (scenario.processes.empty() || !findings.problems().empty()) return;
  if (!expandProcesses(scenario.processes, scenario.cluster, scenario.seed).empty()) return;
  findings.add(locate(root, "fault_processes"),
               fmt::format("fault_processes: with seed {} nothing fails in this time: make 'for' "
                           "longer, 'mtbf' shorter or 'accelerate' larger, or take another seed",
                           scenario.seed));
}

}  // namespace faultline::scenario
