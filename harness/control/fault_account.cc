#include "harness/control/fault_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "harness/scenario/fault_list.h"
#include "injector/faults/flap_clock.h"

namespace faultline::run {
namespace {

/// The moment that was asked for; `strike` counts from 0.
std::string triggerText(const scenario::Fault& fault, std::size_t strike) {
  std::string text;
  if (const auto* after = std::get_if<scenario::After>(&fault.trigger)) {
    text = inWords(*after);
  } else if (fault.again && strike > 0) {
    text = inWords(*fault.again);
  } else if (const auto* at = std::get_if<scenario::At>(&fault.trigger)) {
    text = fmt::format("at {}",
                       formatDuration(at->time + static_cast<std::int64_t>(strike) * fault.every));
  } else if (const auto* moments = std::get_if<scenario::Moments>(&fault.trigger)) {
    text = fmt::format("at {}", formatDuration(moments->list[strike].time));
  } else if (std::holds_alternative<scenario::BeforeStart>(fault.trigger)) {
    text = "before the start";
  } else {
    const auto& during = std::get<scenario::During>(fault.trigger);
    text = fmt::format("iteration {}, {:.0f} %", during.iteration, during.progress * 100);
    if (strike > 0) {
      text += fmt::format(" + {}", formatDuration(static_cast<std::int64_t>(strike) * fault.every));
    }
  }
  if (fault.times > 1) text += fmt::format(" ({} of {})", strike + 1, fault.times);
  return text;
}

// Of an address that no node has on the rail.
constexpr int kNoNode = -1;

/// What the scenario asks of a strike, as far as it can be measured whether that was so.
reports::AskedStrike askedOf(const scenario::Fault& fault, std::size_t strike) {
  reports::AskedStrike asked;
  if (const auto* at = std::get_if<scenario::At>(&fault.trigger)) {
    const bool repeated_by_time = strike == 0 || !fault.again;
    if (repeated_by_time) {
      asked.start_ms = toMilliseconds(at->time + static_cast<std::int64_t>(strike) * fault.every);
    }
  } else if (const auto* moments = std::get_if<scenario::Moments>(&fault.trigger)) {
    asked.start_ms = toMilliseconds(moments->list[strike].time);
  } else if (const auto* during = std::get_if<scenario::During>(&fault.trigger)) {
    asked.progress_pct = during->progress * kWholeInPercent;
    if (strike == 0) asked.iteration = during->iteration;
  }
  const std::optional<Duration> duration = fault.durationOf(strike);
  if (duration) asked.ms = toMilliseconds(*duration);
  if (injector::FlapClock::drives(fault.parameters)) {
    injector::FlapClock clock(fault.parameters);
    clock.lastsFor(duration);
    asked.losses = clock.planned();
  }
  return asked;
}

/// What the first strike passed by, with a semicolon behind it; empty: nothing.
std::string wereTooShort(const FaultTrigger& trigger) {
  const auto& passed = trigger.tooShort();
  if (passed.empty()) return "";
  if (passed.size() == 1) {
    return fmt::format("iteration {} was over at {:.0f} %; ", passed.front().iteration,
                       passed.front().progress * 100);
  }
  return fmt::format("{} iterations from {} on were over sooner; ", passed.size(),
                     passed.front().iteration);
}

/// Of a program that is not ours: what it did not do that the trigger waits for, and what to do.
/// Empty: it did all that; or the trigger waits for nothing of it.
std::string whatTheProgramDidNot(const FaultTrigger& trigger, const scenario::Fault& fault) {
  if (!std::holds_alternative<scenario::During>(fault.trigger)) return "";
  if (!trigger.began()) {
    return fmt::format(
        "no process told that iteration {} began. Each writes the number of each iteration, from "
        "0, into its file of 'command.progress' ($FAULTLINE_PROGRESS)",
        trigger.iteration());
  }
  if (trigger.bytesPerIteration() == 0) {
    return fmt::format(
        "the rails of node {} carried nothing in the iterations before, so that progress is "
        "unknown. Let the program send over them ({{interfaces}}, {{rail_0_address_1}}), or strike "
        "'at' a time",
        nodeOf(fault));
  }
  return "";
}

/// The node that has this address on a rail.
int nodeWith(std::span<const site::NodeNetwork> network, const std::string& address, int rail) {
  const auto has = [&](const site::NodeNetwork& node) {
    return node.rails.at(static_cast<std::size_t>(rail)).address == address;
  };
  const auto found = std::ranges::find_if(network, has);
  return found == network.end() ? kNoNode : static_cast<int>(found - network.begin());
}

/// How often a strike of something that flaps has broken it.
std::int64_t lossesOf(const StruckFault& entry, std::size_t strike) {
  const auto& transitions = entry.fault->transitions();
  const std::size_t from = entry.strikes[strike].firstTransition;
  const std::size_t to = strike + 1 < entry.strikes.size()
                             ? entry.strikes[strike + 1].firstTransition
                             : transitions.size();
  return std::count_if(transitions.begin() + static_cast<std::ptrdiff_t>(from),
                       transitions.begin() + static_cast<std::ptrdiff_t>(to),
                       [](const injector::Transition& transition) { return transition.broken; });
}

/// Why this strike proves nothing; empty: it does.
std::string problemOf(const Strike& strike, int ranks) {
  if (!strike.evidence || !strike.evidence->ok) {
    return fmt::format("left no evidence: {}",
                       strike.evidence ? strike.evidence->observed : "nothing was observed");
  }
  if (strike.hit && !strike.hit->ok()) {
    return fmt::format("missed its iteration: {}", strike.hit->detail());
  }
  if (strike.endedLater.size() < static_cast<std::size_t>(std::min(2, ranks))) {
    return "came when the work was over";
  }
  return "";
}

}  // namespace

FaultChanges changesOf(std::span<const StruckFault> faults,
                       std::span<const site::NodeNetwork> network) {
  FaultChanges all;
  for (const StruckFault& entry : faults) {
    FaultChanges::OfFault& fault = all.faults.emplace_back();
    fault.group = entry.spec.group;
    if (entry.spec.target && entry.spec.target->part == scenario::Part::kRail) {
      fault.node = entry.spec.target->node;
      fault.rail = entry.spec.target->rail;
    }
    for (const injector::Transition& one : entry.fault->transitions()) {
      FaultChange& change = fault.changes.emplace_back(
          FaultChange{.broken = one.broken, .before = one.before, .after = one.after});
      if (!one.peer.empty())
        change.peer = fault.rail ? nodeWith(network, one.peer, *fault.rail) : kNoNode;
    }
  }
  return all;
}

std::vector<TimePoint> damagesOf(std::span<const StruckFault> faults) {
  std::vector<TimePoint> moments;
  for (const StruckFault& entry : faults) {
    for (const injector::Transition& transition : entry.fault->transitions()) {
      if (transition.broken) moments.push_back(transition.before);
    }
  }
  std::ranges::sort(moments);
  return moments;
}

std::vector<reports::AppliedFault> appliedOf(std::span<const StruckFault> faults, TimePoint t0) {
  std::vector<reports::AppliedFault> result;
  for (const StruckFault& entry : faults) {
    for (std::size_t index = 0; index < entry.strikes.size(); ++index) {
      const Strike& strike = entry.strikes[index];
      reports::AppliedFault& fault = result.emplace_back();
      fault.kind = entry.spec.kind;
      fault.mechanism = entry.fault->mechanism();
      for (const auto& [name, value] : entry.spec.parameters.all()) {
        fault.parameters[name] = formatParameter(value);
        fault.mechanism += fmt::format(", {}: {}", name, fault.parameters[name]);
      }
      if (const auto& target = entry.spec.target) {
        fault.target.node = target->node;
        if (target->part == scenario::Part::kRail) fault.target.rail = target->rail;
        fault.target.peer = target->peer;
        fault.target.text = inWords(*target);
      }
      fault.trigger = triggerText(entry.spec, index);
      fault.asked = askedOf(entry.spec, index);
      if (fault.asked.losses) fault.losses = lossesOf(entry, index);
      fault.start_ms = toMilliseconds(strike.applied - t0);
      fault.start_within_ms = toMilliseconds(strike.within);
      if (strike.ended) fault.end_ms = toMilliseconds(*strike.ended - t0);
      if (strike.hit) {
        reports::FaultHit hit;
        hit.ok = strike.hit->ok();
        hit.iteration = strike.hit->iteration();
        hit.progress_pct = strike.hit->progress() * 100;
        hit.detail = wereTooShort(entry.trigger) + strike.hit->detail();
        fault.hit = hit;
      }
    }
  }
  return result;
}

std::vector<reports::Evidence> evidenceOf(std::span<const StruckFault> faults) {
  std::vector<reports::Evidence> result;
  for (const StruckFault& entry : faults) {
    for (const Strike& strike : entry.strikes) {
      reports::Evidence& evidence = result.emplace_back();
      evidence.fault = static_cast<int>(result.size()) - 1;  // as in `applied`
      if (!strike.evidence) continue;
      evidence.kind = strike.evidence->kind;
      evidence.observed = strike.evidence->observed;
      evidence.ok = strike.evidence->ok;
      evidence.numbers = strike.evidence->numbers;
    }
  }
  return result;
}

std::string whyInvalid(std::span<const StruckFault> faults, int ranks, bool foreign) {
  for (const StruckFault& entry : faults) {
    const std::string& kind = entry.spec.kind;
    for (std::size_t index = 0; index < entry.strikes.size(); ++index) {
      const std::string problem = problemOf(entry.strikes[index], ranks);
      if (problem.empty()) continue;
      return fmt::format("{} ({}) {}", kind, triggerText(entry.spec, index), problem);
    }
    if (entry.strikes.size() == static_cast<std::size_t>(entry.spec.times)) continue;
    std::string why = entry.strikes.empty() ? wereTooShort(entry.trigger) : "";
    if (foreign && entry.strikes.empty()) {
      if (std::string not_done = whatTheProgramDidNot(entry.trigger, entry.spec);
          !not_done.empty()) {
        why = std::move(not_done);
      }
    }
    return fmt::format("{} ({}) never triggered{}", kind,
                       triggerText(entry.spec, entry.strikes.size()),
                       why.empty() ? "" : ": " + why.substr(0, why.find(';')));
  }
  return "";
}

}  // namespace faultline::run
