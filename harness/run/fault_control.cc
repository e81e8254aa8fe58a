#include "harness/run/fault_control.h"

#include <fmt/format.h>

#include <algorithm>

#include "injector/faults/registry.h"

namespace faultline::run {
namespace {

/// The target node of a fault; faults without a target watch node 0.
int nodeOf(const scenario::Fault& fault) { return fault.target ? fault.target->node : 0; }

std::string triggerText(const scenario::Fault& fault) {
  if (const auto* at = std::get_if<scenario::At>(&fault.trigger)) {
    return fmt::format("at {}", formatDuration(at->time));
  }
  const auto& during = std::get<scenario::During>(fault.trigger);
  return fmt::format("iteration {}, {:.0f} %", during.iteration, during.progress * 100);
}

}  // namespace

Result<FaultControl> FaultControl::create(const scenario::Scenario& scenario,
                                          cluster::NetnsCluster& cluster) {
  FaultControl control;
  control.ranks_ = scenario.cluster.ranks();
  for (const scenario::Fault& spec : scenario.faults) {
    const scenario::Target target = spec.target.value_or(scenario::Target{});
    ASSIGN_OR_RETURN(std::unique_ptr<injector::Fault> fault,
                     injector::makeFault(spec.kind, spec.parameters,
                                         cluster.railTarget(target.node, target.rail)));
    RETURN_IF_ERROR(fault->prepare().withContext(
        fmt::format("prepare {} on node {}, rail {}", spec.kind, target.node, target.rail)));
    control.entries_.push_back(
        Entry{spec, FaultTrigger(spec), std::move(fault), {}, {}, {}, {}, false, {}});
  }
  return control;
}

void FaultControl::warmupIteration(int node, std::uint64_t bytes) {
  for (Entry& entry : entries_) {
    if (nodeOf(entry.spec) == node) entry.trigger.warmupIteration(bytes);
  }
}

void FaultControl::started(TimePoint t0) {
  for (Entry& entry : entries_) entry.trigger.started(t0);
}

void FaultControl::iterationBegan(int iteration, const Sampler& sampler) {
  for (Entry& entry : entries_) {
    entry.trigger.iterationBegan(iteration, sampler.nodeBytes(nodeOf(entry.spec)));
  }
}

void FaultControl::iterationEnded(int rank, int iteration, TimePoint when) {
  for (Entry& entry : entries_) {
    if (entry.hit) entry.hit->iterationEnded(rank, iteration, when);
    if (entry.applied && when > *entry.applied) entry.endedLater.insert(rank);
  }
}

Status FaultControl::step(TimePoint now, const Sampler& sampler) {
  for (Entry& entry : entries_) {
    const int node = nodeOf(entry.spec);
    if (!entry.applied && entry.trigger.due(now, sampler.nodeBytes(node))) {
      RETURN_IF_ERROR(apply(entry, now, sampler));
    }
    if (entry.hit && entry.applied && now > *entry.applied) {
      entry.hit->othersCounter(sampler.otherBytes(node));
    }
    if (!entry.active) continue;
    RETURN_IF_ERROR(entry.fault->step(now));
    if (entry.spec.duration && now >= *entry.applied + *entry.spec.duration) {
      RETURN_IF_ERROR(end(entry));
    }
  }
  return okStatus();
}

Status FaultControl::apply(Entry& entry, TimePoint now, const Sampler& sampler) {
  const int node = nodeOf(entry.spec);
  const std::optional<double> progress = entry.trigger.progress(sampler.nodeBytes(node));
  RETURN_IF_ERROR(entry.fault->apply().withContext(fmt::format("apply {}", entry.spec.kind)));
  const auto& transitions = entry.fault->transitions();
  entry.applied = transitions.empty() ? now : transitions.front().before;
  entry.active = true;
  if (const auto* during = std::get_if<scenario::During>(&entry.spec.trigger)) {
    entry.hit.emplace(during->iteration, progress.value_or(0), *entry.applied,
                      sampler.otherBytes(node), ranks_);
  }
  return okStatus();
}

Status FaultControl::end(Entry& entry, bool observe) {
  entry.active = false;
  std::optional<Result<injector::Evidence>> evidence;
  if (observe) evidence = entry.fault->evidence();
  const Status reverted = entry.fault->revert();
  entry.ended = faultline::now();
  if (const auto& transitions = entry.fault->transitions();
      !transitions.empty() && !transitions.back().broken) {
    entry.ended = transitions.back().after;
  }
  if (evidence && evidence->ok()) {
    entry.evidence = std::move(**evidence);
  } else if (evidence) {
    entry.evidence =
        injector::Evidence{entry.spec.kind, "none", evidence->status().message(), false};
  }
  if (reverted.ok()) return reverted;
  return errorf(Code::kNotRestored, "revert {}: {}", entry.spec.kind, reverted.message());
}

Status FaultControl::revertAll() {
  Status first;
  for (Entry& entry : entries_) {
    if (!entry.active) continue;
    const Status status = end(entry);
    if (first.ok()) first = status;
  }
  return first;
}

Status FaultControl::abandon() {
  Status first;
  for (Entry& entry : entries_) {
    if (!entry.active) continue;
    const Status status = end(entry, /*observe=*/false);
    if (first.ok()) first = status;
  }
  return first;
}

Status FaultControl::endThoseWithoutDuration() {
  for (Entry& entry : entries_) {
    if (entry.active && !entry.spec.duration) RETURN_IF_ERROR(end(entry));
  }
  return okStatus();
}

bool FaultControl::anyActive() const { return std::ranges::any_of(entries_, &Entry::active); }

void FaultControl::restarted() {
  for (Entry& entry : entries_) entry.trigger.restarted();
}

std::vector<TimePoint> FaultControl::damages() const {
  std::vector<TimePoint> moments;
  for (const Entry& entry : entries_) {
    for (const injector::Transition& transition : entry.fault->transitions()) {
      if (transition.broken) moments.push_back(transition.before);
    }
  }
  std::ranges::sort(moments);
  return moments;
}

std::optional<TimePoint> FaultControl::damageBehind(TimePoint when, int rail, int nodeA,
                                                    int nodeB) const {
  std::optional<TimePoint> latest;
  for (const Entry& entry : entries_) {
    if (!entry.spec.target || entry.spec.target->rail != rail) continue;
    if (entry.spec.target->node != nodeA && entry.spec.target->node != nodeB) continue;
    const auto damage = run::damageBehind(entry.fault->transitions(), when);
    if (damage && (!latest || *damage > *latest)) latest = damage;
  }
  return latest;
}

std::vector<reports::AppliedFault> FaultControl::applied(TimePoint t0) const {
  std::vector<reports::AppliedFault> result;
  for (const Entry& entry : entries_) {
    if (!entry.applied) continue;
    reports::AppliedFault& fault = result.emplace_back();
    fault.kind = entry.spec.kind;
    fault.mechanism = entry.fault->mechanism();
    for (const auto& [name, value] : entry.spec.parameters.all()) {
      fault.mechanism += fmt::format(", {}: {}", name, formatParameter(value));
    }
    if (entry.spec.target) {
      fault.target.node = entry.spec.target->node;
      fault.target.rail = entry.spec.target->rail;
      fault.target.text =
          fmt::format("node {}, rail {}", entry.spec.target->node, entry.spec.target->rail);
    }
    fault.trigger = triggerText(entry.spec);
    fault.start_ms = toMilliseconds(*entry.applied - t0);
    if (entry.ended) fault.end_ms = toMilliseconds(*entry.ended - t0);
    if (entry.hit) {
      reports::FaultHit hit;
      hit.ok = entry.hit->ok();
      hit.iteration = entry.hit->iteration();
      hit.progress_pct = entry.hit->progress() * 100;
      hit.detail = entry.hit->detail();
      fault.hit = hit;
    }
  }
  return result;
}

std::vector<reports::Evidence> FaultControl::evidence() const {
  std::vector<reports::Evidence> result;
  int index = 0;
  for (const Entry& entry : entries_) {
    if (!entry.applied) continue;  // as in `applied`
    reports::Evidence& evidence = result.emplace_back();
    evidence.fault = index++;
    if (!entry.evidence) continue;
    evidence.kind = entry.evidence->kind;
    evidence.observed = entry.evidence->observed;
    evidence.ok = entry.evidence->ok;
  }
  return result;
}

std::string FaultControl::invalidBecause() const {
  for (const Entry& entry : entries_) {
    const std::string what = fmt::format("{} ({})", entry.spec.kind, triggerText(entry.spec));
    if (!entry.applied) return fmt::format("{} never triggered", what);
    if (!entry.evidence || !entry.evidence->ok) {
      return fmt::format("{} left no evidence: {}", what,
                         entry.evidence ? entry.evidence->observed : "nothing was observed");
    }
    if (entry.hit && !entry.hit->ok()) {
      return fmt::format("{} missed its iteration: {}", what, entry.hit->detail());
    }
    if (entry.endedLater.size() < static_cast<std::size_t>(std::min(2, ranks_))) {
      return fmt::format("{} came when the work was over", what);
    }
  }
  return "";
}

}  // namespace faultline::run
