#include "harness/control/fault_control.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/command/variables.h"
#include "harness/control/fault_account.h"
#include "harness/scenario/fault_list.h"
#include "harness/scenario/workload_kind.h"
#include "injector/faults/registry.h"

namespace faultline::run {
namespace {

site::FaultTarget targetOf(const scenario::Fault& fault) {
  const scenario::Target target = fault.target.value_or(scenario::Target{});
  site::FaultTarget found{.node = target.node};
  if (target.part == scenario::Part::kRail) {
    found.rail = target.rail;
    found.peer = target.peer;
  }
  if (target.rank) found.startedWith = command::rankEntry(*target.rank);
  return found;
}

/// Of all strikes; one without an end is over with the run.
Duration longestOf(const scenario::Scenario& scenario, const scenario::Fault& fault) {
  Duration longest{};
  for (std::size_t strike = 0; strike < static_cast<std::size_t>(fault.times); ++strike) {
    longest = std::max(longest, fault.durationOf(strike).value_or(scenario.limits.deadline));
  }
  return longest;
}

/// Whether both act on one port of a switch, or isolate some: two pairs could not be told apart.
bool collide(const scenario::Target& a, const scenario::Target& b) {
  const auto acts = [](const scenario::Target& target, int node) {
    return target.node == node || target.peer == node;
  };
  return a.part == b.part && a.rail == b.rail &&
         ((a.peer && b.peer) || acts(a, b.node) || acts(b, a.node));
}

}  // namespace

Result<FaultControl> FaultControl::create(const scenario::Scenario& scenario,
                                          site::Cluster& cluster, const GiveUp& stop) {
  const MakeFault make = [&](const scenario::Fault& fault) {
    return cluster.makeFault(fault.kind, fault.parameters, targetOf(fault));
  };
  ASSIGN_OR_RETURN(FaultControl control, create(scenario, make, stop));
  control.network_ = cluster.network();
  return control;
}

Result<FaultControl> FaultControl::create(const scenario::Scenario& scenario, const MakeFault& make,
                                          const GiveUp& stop) {
  FaultControl control;
  control.stop_ = stop;
  // Of programs that are not ours nobody knows how many tell of their iterations, or work at all.
  control.foreign_ = !scenario.workload.kind->runsRanks;
  control.ranks_ = control.foreign_ ? 1 : scenario.cluster.ranks();
  const bool serves = scenario.workload.kind->hasRequests;
  if (serves) control.requests_.emplace(control.ranks_);
  using enum FaultTrigger::Likeness;
  for (const scenario::Fault& spec : scenario::allFaults(scenario)) {
    const scenario::Target target = spec.target.value_or(scenario::Target{});
    ASSIGN_OR_RETURN(std::unique_ptr<injector::Fault> fault, make(spec));
    fault->stopWhen(stop);
    fault->noLongerThan(longestOf(scenario, spec));
    RETURN_IF_ERROR(fault->prepare().withContext(
        spec.target ? fmt::format("prepare {} on {}", spec.kind, inWords(target))
                    : fmt::format("prepare {}", spec.kind)));
    const injector::FaultKind* const kind = injector::findFaultKind(spec.kind);
    control.entries_.push_back(
        StruckFault{.spec = spec,
                    .trigger = FaultTrigger(spec, serves ? kOwnLengths : kEqual),
                    .fault = std::move(fault),
                    .strikes = {},
                    .alone = kind != nullptr && kind->alone});
  }
  return control;
}

void FaultControl::warmupIteration(int node, std::uint64_t bytes) {
  for (StruckFault& entry : entries_) {
    if (nodeOf(entry.spec) == node) entry.trigger.warmupIteration(bytes);
  }
}

void FaultControl::started(TimePoint t0) {
  for (StruckFault& entry : entries_) entry.trigger.started(t0);
}

void FaultControl::iterationBegan(int iteration, TimePoint when, TimePoint seen, Sampler& sampler) {
  const bool marked = std::ranges::any_of(entries_, [](const StruckFault& entry) {
    return std::holds_alternative<scenario::During>(entry.spec.trigger);
  });
  if (marked) (void)sampler.sample(faultline::now());
  if (begun_.empty() || iteration > begun_.rbegin()->first) through_.clear();
  begun_[iteration] = when;
  for (StruckFault& entry : entries_) {
    entry.trigger.iterationBegan(iteration, when, seen, sampler.nodeBytes(nodeOf(entry.spec)));
  }
}

void FaultControl::iterationEnded(int process, int iteration, TimePoint when, Sampler& sampler,
                                  bool last) {
  if (countsBytes()) (void)sampler.sample(faultline::now());
  // Programs that are not ours are one job, of which the furthest process tells.
  const int rank = foreign_ ? 0 : process;
  const auto begun = begun_.find(iteration);
  if (!begun_.empty() && iteration == begun_.rbegin()->first) through_.insert(rank);
  const bool over = !requests_ || requests_->ended(iteration, last);
  for (StruckFault& entry : entries_) {
    if (over) entry.trigger.iterationEnded(iteration, sampler.nodeBytes(nodeOf(entry.spec)));
    wasIn(entry, rank, iteration, when);
    for (Strike& strike : entry.strikes) {
      const bool after = begun != begun_.end() && begun->second > strike.applied;
      if (after && !strike.recovered) strike.recovered = when;
    }
  }
  begun_.erase(begun_.begin(), begun_.lower_bound(iteration));
}

void FaultControl::wasIn(StruckFault& entry, int rank, int iteration, TimePoint until) {
  for (Strike& strike : entry.strikes) {
    if (strike.hit) strike.hit->iterationEnded(rank, iteration, until);
    if (until > strike.applied) strike.endedLater.insert(rank);
  }
}

void FaultControl::givenUp(TimePoint now, const std::vector<bool>& ended) {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!ended.at(rank)) givenUp(now, rank);
  }
}

void FaultControl::givenUp(TimePoint now, int rank) {
  // Who is through waits for the others, before it begins the next.
  const int newest = begun_.empty() ? 0 : begun_.rbegin()->first;
  const int iteration = through_.contains(rank) ? newest + 1 : newest;
  for (StruckFault& entry : entries_) wasIn(entry, rank, iteration, now);
}

bool FaultControl::hasWaited(StruckFault& entry) const {
  const auto awaited = entry.trigger.awaited();
  if (!awaited) return true;
  const std::vector<Strike>& strikes = entries_[awaited->after.fault].strikes;
  if (strikes.size() <= awaited->strike) return false;
  const Strike& strike = strikes[awaited->strike];
  using enum scenario::After::Mark;
  const std::optional<TimePoint> when = awaited->after.mark == kBegin ? strike.applied
                                        : awaited->after.mark == kEnd ? strike.ended
                                                                      : strike.recovered;
  if (when) entry.trigger.happened(*when);
  return when.has_value();
}

bool FaultControl::countsBytes() const {
  return std::ranges::any_of(entries_, [](const StruckFault& entry) {
    const bool waits = !entry.strikes.empty() && entry.strikes.back().hit &&
                       !entry.strikes.back().hit->othersMoved();
    return entry.trigger.watching() || waits;
  });
}

Status FaultControl::step(TimePoint now, Sampler& sampler) {
  if (countsBytes()) RETURN_IF_ERROR(sampler.sample(now));
  // All that are due strike before anything else is done: those of a group do it together, for
  // which what the first of them has just done counts as known.
  for (StruckFault& entry : entries_) {
    if (entry.active || !hasWaited(entry) || mustWait(entry)) continue;
    const std::uint64_t bytes = sampler.nodeBytes(nodeOf(entry.spec));
    if (entry.trigger.due(faultline::now(), bytes)) RETURN_IF_ERROR(apply(entry, now, sampler));
  }
  std::vector<StruckFault*> over;
  for (StruckFault& entry : entries_) {
    if (entry.strikes.empty()) continue;
    const int node = nodeOf(entry.spec);
    Strike& strike = entry.strikes.back();
    if (strike.hit && now > strike.applied) strike.hit->othersCounter(sampler.otherBytes(node));
    if (!entry.active) continue;
    RETURN_IF_ERROR(entry.fault->step(now));
    const std::optional<Duration> duration = entry.spec.durationOf(entry.strikes.size() - 1);
    const std::optional<TimePoint> from = entry.trigger.lastsFrom(strike.applied, strike.within);
    if (duration && from && now >= *from + *duration) over.push_back(&entry);
  }
  return end(over);
}

bool FaultControl::mustWait(const StruckFault& entry) const {
  return entry.alone && std::ranges::any_of(entries_, [&](const StruckFault& other) {
           return other.active && other.alone && other.spec.target && entry.spec.target &&
                  collide(*other.spec.target, *entry.spec.target);
         });
}

Status FaultControl::apply(StruckFault& entry, TimePoint now, const Sampler& sampler) {
  const int node = nodeOf(entry.spec);
  const std::optional<double> progress = entry.trigger.progress(sampler.nodeBytes(node));
  const std::size_t known = entry.fault->transitions().size();
  entry.fault->lastsFor(entry.spec.durationOf(entry.strikes.size()));
  if (const Status applied = entry.fault->apply(); !applied.ok()) {
    const Status reverted = entry.fault->revert();
    if (reverted.ok()) return applied.withContext("apply " + entry.spec.kind);
    return Status(reverted.code(),
                  fmt::format("apply {0}: {1}; and then: revert {0}: {2}", entry.spec.kind,
                              applied.message(), reverted.message()));
  }
  const auto& transitions = entry.fault->transitions();
  Strike& strike = entry.strikes.emplace_back();
  strike.firstTransition = known;
  strike.applied = transitions.size() > known ? transitions[known].before : now;
  if (transitions.size() > known) strike.within = transitions.back().after - strike.applied;
  entry.active = true;
  if (std::holds_alternative<scenario::During>(entry.spec.trigger)) {
    strike.hit.emplace(entry.trigger.iteration(), progress.value_or(0), strike.applied,
                       sampler.otherBytes(node), ranks_);
  }
  return okStatus();
}

Status FaultControl::observeLast(StruckFault& entry) {
  // A fault may end by itself when it is not stepped for a while, and evidence may take longer.
  Status others;
  Result<injector::Evidence> evidence = entry.fault->evidence([&] {
    others = stepOthers(entry);
    return !others.ok() || (stop_ && stop_());
  });
  entry.strikes.back().evidence =
      evidence.ok()
          ? std::move(*evidence)
          : injector::Evidence{entry.spec.kind, "none", evidence.status().message(), false};
  return others;
}

Status FaultControl::stepOthers(const StruckFault& entry) {
  for (StruckFault& other : entries_) {
    if (&other != &entry && other.active) RETURN_IF_ERROR(other.fault->step(faultline::now()));
  }
  return okStatus();
}

Status FaultControl::revert(StruckFault& entry, TimePoint asked) {
  Strike& strike = entry.strikes.back();
  entry.active = false;
  const auto duration = entry.spec.durationOf(entry.strikes.size() - 1);
  const auto from = entry.trigger.lastsFrom(strike.applied, strike.within);
  if (duration && from) asked = std::min(asked, *from + *duration);
  const Status reverted = entry.fault->revert();
  strike.ended = faultline::now();
  if (const auto& transitions = entry.fault->transitions();
      !transitions.empty() && !transitions.back().broken) {
    strike.ended = transitions.back().after;
  }
  if (const auto lapsed = entry.fault->lapsedAt()) {
    strike.ended = lapsed;
    if (strike.evidence) {
      strike.evidence->observed += fmt::format(
          "; it ended by itself after about {:.0f} ms: the bench was stopped, or the "
          "machine is too busy",
          toMilliseconds(*lapsed - strike.applied));
      strike.evidence->ok = strike.evidence->ok && *lapsed >= asked;
    }
  }
  if (reverted.ok()) return reverted;
  return errorf(Code::kNotRestored, "revert {}: {}", entry.spec.kind, reverted.message());
}

Status FaultControl::end(const std::vector<StruckFault*>& entries, bool observe) {
  const TimePoint asked = faultline::now();
  Status first;
  for (StruckFault* const entry : entries) {
    const Status status = observe ? observeLast(*entry) : okStatus();
    if (first.ok()) first = status;
  }
  for (StruckFault* const entry : entries) {
    const Status status = revert(*entry, asked);
    if (first.ok()) first = status;
  }
  return first;
}

Status FaultControl::revertAll() { return end(allActive()); }

/// The user does not wait for evidence.
Status FaultControl::abandon() { return end(allActive(), /*observe=*/false); }

Status FaultControl::endThoseWithoutDuration() {
  std::vector<StruckFault*> broken = allActive();
  std::erase_if(broken, [](const StruckFault* entry) { return entry->spec.duration.has_value(); });
  return end(broken);
}

std::vector<StruckFault*> FaultControl::allActive() {
  std::vector<StruckFault*> active;
  for (StruckFault& entry : entries_) {
    if (entry.active) active.push_back(&entry);
  }
  return active;
}

bool FaultControl::anyActive() const { return std::ranges::any_of(entries_, &StruckFault::active); }

void FaultControl::restarted() {
  begun_.clear();
  through_.clear();
  if (requests_) requests_->restarted();
  for (StruckFault& entry : entries_) entry.trigger.restarted();
}

FaultChanges FaultControl::changes() const { return changesOf(entries_, network_); }

std::vector<TimePoint> FaultControl::damages() const { return damagesOf(entries_); }

std::vector<reports::AppliedFault> FaultControl::applied(TimePoint t0) const {
  return appliedOf(entries_, t0);
}

std::vector<reports::Evidence> FaultControl::evidence() const { return evidenceOf(entries_); }

std::string FaultControl::invalidBecause() const { return whyInvalid(entries_, ranks_, foreign_); }

}  // namespace faultline::run
