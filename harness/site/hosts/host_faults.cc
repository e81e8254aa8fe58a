#include "harness/site/hosts/host_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <utility>
#include <variant>

#include "base/text.h"
#include "harness/site/remote_fault.h"
#include "injector/faults/registry.h"
#include "injector/safety/host_fault.h"

namespace faultline::hosts {
namespace {

constexpr const char* kRate = "rate";
constexpr const char* kMark = "FAULTLINE_STARTED_BY";

// Announcing, settling and taking the announcement back: each may take a policy's command 30 s, and
// an undo 10 s until the link works.
constexpr Duration kServiceAnswers = 90s;
constexpr Duration kProcessAnswers = 30s;
// With Ctrl-C: for its own answer, and once more for that of its service. A port that comes back
// needs a second or two.
constexpr Duration kLastAnswer = 2s;
// For the word that it is over, besides what evidence takes.
constexpr Duration kSpare = 5s;
// Besides the lease, for a service that was started anew to undo what it finds, and settle.
constexpr Duration kUndoBudget = 20s;
constexpr Duration kAskAgain = 50ms;
constexpr Duration kListen = 5ms;

bool isOfOwnProcesses(const injector::FaultKind& kind) {
  return kind.target == injector::TargetKind::kProcesses && !kind.ofQueuePairs;
}

bool isPossible(const injector::FaultKind& kind) {
  return kind.makeOnHost != nullptr || isOfOwnProcesses(kind);
}

bool isPercentage(const injector::FaultParameters& parameters) {
  return parameters.has(kRate) &&
         std::holds_alternative<injector::Percent>(parameters.value(kRate));
}

}  // namespace

site::Refusal refusal(const injector::FaultKind& kind,
                      const injector::FaultParameters& parameters) {
  if (!isPossible(kind)) {
    std::vector<std::string_view> possible;
    for (const injector::FaultKind& row : injector::faultKinds()) {
      if (isPossible(row)) possible.push_back(row.name);
    }
    return {std::string(site::kRefusedKind),
            fmt::format("{}: hosts have only {}", kind.name, join(possible, ", "))};
  }
  for (const auto& [name, value] : kind.hostDefaults) {
    const std::string key(name);
    if (!parameters.has(key) || formatParameter(parameters.value(key)) == value) continue;
    const auto made = kind.makeOnHost(parameters);
    return {key, fmt::format("{}: on a host write '{}'{}", key, value,
                             made.ok() ? "" : ": " + made.status().message())};
  }
  return {};
}

Duration spareOf(const injector::FaultKind& kind, const injector::FaultParameters& parameters) {
  if (kind.makeOnHost == nullptr) return kSpare;
  const auto made = kind.makeOnHost(parameters);
  // A percentage is a rate that is not known yet.
  return made.ok() && made->watch ? made->watch->evidenceBudget() + kSpare : kSpare;
}

HostFaults::HostFaults(site::Agents& agents, const std::vector<std::string>& names,
                       const std::vector<site::NodeNetwork>& network, Duration lease,
                       std::string run)
    : agents_(agents),
      names_(names),
      network_(network),
      lease_(lease),
      run_(std::move(run)),
      mark_(fmt::format("{:08x}{:08x}", std::random_device()(), std::random_device()())) {}

std::pair<std::string, std::string> HostFaults::markOf(int host) const {
  return {kMark, fmt::format("{}.{}", mark_, host)};
}

Result<std::unique_ptr<injector::Fault>> HostFaults::make(
    const injector::FaultKind& kind, const injector::FaultParameters& parameters,
    const site::FaultTarget& target, BitsPerSecond railRate) {
  if (isOfOwnProcesses(kind)) return makeOfProcesses(kind, parameters, target);
  return makeOfInterface(kind, parameters, target, railRate);
}

std::unique_ptr<injector::Fault> HostFaults::makeOfProcesses(
    const injector::FaultKind& kind, const injector::FaultParameters& parameters,
    const site::FaultTarget& target) {
  wire::HeldFault held = site::heldFault(std::string(kind.name), parameters);
  const auto [variable, value] = markOf(target.node);
  held.startedWith = {variable + "=" + value};
  if (!target.startedWith.empty()) held.startedWith.push_back(target.startedWith);
  // Whatever it has done to them, they end with the run.
  const auto end = [](const Status&) { return okStatus(); };
  return std::make_unique<site::RemoteFault>(
      *this, target.node, "host " + name(target.node), std::move(held),
      site::RemoteManner{.answers = kProcessAnswers, .lastAnswer = kLastAnswer, .undone = end});
}

Result<std::unique_ptr<injector::Fault>> HostFaults::makeOfInterface(
    const injector::FaultKind& kind, const injector::FaultParameters& parameters,
    const site::FaultTarget& target, BitsPerSecond railRate) {
  const int host = target.node;
  if (!target.rail || target.peer) {
    return errorf(Code::kUnsupported, "{}: hosts have faults of rails only", kind.name);
  }
  wire::HeldFault held = site::heldFault(std::string(kind.name), parameters);
  if (isPercentage(parameters)) {
    if (railRate == 0) {
      return errorf(Code::kUnavailable,
                    "{} of a percentage: nobody tells how fast the rails of the hosts are. Write a "
                    "rate, like 100Mbit, or say it with 'rail_rate'",
                    kind.name);
    }
    const double share = parameters.get<injector::Percent>(kRate).value / kWholeInPercent;
    held.parameters[kRate] = formatParameter(
        injector::Rate{static_cast<BitsPerSecond>(share * static_cast<double>(railRate))});
  }
  const auto at = [](const auto& list, int index) -> const auto& {
    return list[static_cast<std::size_t>(index)];
  };
  const std::vector<site::Nic>& rails = at(network_, host).rails;
  if (*target.rail >= static_cast<int>(rails.size())) {
    return errorf(Code::kInvalidArgument, "{}: host {} has no rail {}: it has {}", kind.name,
                  name(host), *target.rail, rails.size());
  }
  held.interface = at(rails, *target.rail).interface;
  held.run = run_;
  for (std::size_t other = 0; other < network_.size(); ++other) {
    // Of hosts that are all this machine it is this one's, too.
    if (static_cast<int>(other) != host) held.keep.push_back(network_[other].management.address);
  }
  site::RemoteManner manner{
      .answers = kServiceAnswers,
      .lastAnswer = kLastAnswer,
      .undone = [this, host, interface = held.interface](
                    const Status& why) { return awaitUndo(host, interface, why); },
      .spare = spareOf(kind, parameters)};
  const std::optional<wire::FaultServiceTold>& service = agents_.toldFaultService(host);
  if (service && service->facts.policy) manner.longest = service->facts.policy->longest;
  return std::unique_ptr<injector::Fault>(std::make_unique<site::RemoteFault>(
      *this, host, "host " + name(host), std::move(held), std::move(manner)));
}

wire::AskFaultService HostFaults::questionOf(int host) const {
  wire::AskFaultService asked;
  for (std::size_t other = 0; other < network_.size(); ++other) {
    const bool itself = static_cast<int>(other) == host;
    for (const site::Nic& rail : network_[other].rails) {
      (itself ? asked.question.interfaces : asked.peers)
          .push_back(itself ? rail.interface : rail.address);
    }
  }
  return asked;
}

Status HostFaults::askServices() {
  for (std::size_t host = 0; host < names_.size(); ++host) {
    const int node = static_cast<int>(host);
    RETURN_IF_ERROR(agents_.askFaultService(node, questionOf(node)));
  }
  return okStatus();
}

std::string HostFaults::inWords() const {
  std::map<std::string, std::vector<std::string_view>> said;  // most say the same
  bool any = false;
  for (std::size_t host = 0; host < names_.size(); ++host) {
    const auto& told = agents_.toldFaultService(static_cast<int>(host));
    if (!told) continue;
    std::string what = told->outcome.message;
    if (told->outcome.code == Code::kOk) {
      const wire::ServiceFacts& facts = told->facts;
      any = true;
      what = !facts.whyNot.empty() ? facts.whyNot
             : facts.policy        ? facts.policy->words
                                   : facts.whyNoPolicy;
    }
    said[what].push_back(names_[host]);
  }
  std::string text;
  for (const auto& [what, hosts] : said) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", join(hosts, ", "), what);
  }
  return any ? text : "none can be made of interfaces: " + text;
}

std::string HostFaults::leftAt(int host) const {
  std::vector<std::string_view> left;
  for (const auto& [id, held] : held_) {
    if (held.host == host && held.ofInterface && held.inEffect) left.push_back(held.what);
  }
  if (left.empty()) return "";
  return fmt::format("with {} in effect, which its fault service undoes within {}",
                     join(left, ", "), formatDuration(lease_));
}

Result<int> HostFaults::startFault(int node, const wire::HeldFault& fault) {
  ASSIGN_OR_RETURN(const int id, agents_.startFault(node, fault));
  const bool of = !fault.interface.empty();
  held_[id] = Held{.host = node,
                   .what = of ? fault.kind + " of " + fault.interface : fault.kind,
                   .ofInterface = of};
  return id;
}

Status HostFaults::tellFault(int fault, const wire::ToHolder& message) {
  const auto found = held_.find(fault);
  const auto* const call = std::get_if<wire::CallFault>(&message);
  if (found != held_.end() && call != nullptr) {
    if (call->call == wire::FaultCall::kApply) found->second.inEffect = true;
    if (call->call == wire::FaultCall::kRevert) found->second.inEffect = false;
  }
  return agents_.tellFault(fault, message);
}

std::optional<wire::FromHolder> HostFaults::faultSaid(int fault) {
  if (auto said = agents_.faultSaid(fault)) return said;
  const auto found = held_.find(fault);
  if (found == held_.end() || found->second.gone || !agents_.isLost(found->second.host)) {
    return std::nullopt;
  }
  found->second.gone = true;
  return wire::Gone{"its host is lost"};
}

Status HostFaults::endFault(int fault) {
  held_.erase(fault);
  return agents_.endFault(fault);
}

Status HostFaults::listen(Duration timeout) {
  const Status heard = agents_.listen(timeout);
  const auto isLost = [this](std::size_t host) { return agents_.isLost(static_cast<int>(host)); };
  for (std::size_t host = 0; host < names_.size(); ++host) {
    if (isLost(host)) return okStatus();
  }
  return heard;
}

Status HostFaults::awaitUndo(int host, const std::string& interface, const Status& why) {
  const auto unknown = [&](const std::string& more) {
    return errorf(Code::kNotRestored,
                  "{}; and nobody says that {} of host {} is as it was before{}: see 'faultline "
                  "status' there, and 'faultline restore' undoes what is left",
                  why.message(), interface, name(host), more);
  };
  if (agents_.isLost(host)) return okStatus();  // Cluster::lost() tells of it
  const GiveUp& giveUp = agents_.giveUp();
  const TimePoint began = now();
  std::string more;
  bool asked = false;
  TimePoint askAt = began;
  for (;;) {
    if (agents_.isLost(host)) return okStatus();
    if (!asked && now() >= askAt) {
      RETURN_IF_ERROR(agents_.askFaultService(host, questionOf(host)));
      asked = true;
    }
    const std::optional<wire::FaultServiceTold>& told = agents_.toldFaultService(host);
    if (asked && told) {
      asked = false;
      askAt = now() + kAskAgain;
      const auto& strikes = told->facts.strikes;
      const auto left = std::ranges::find(strikes, interface, &wire::KnownStrike::interface);
      if (told->outcome.code != Code::kOk) {
        more = " (" + told->outcome.message + ")";
      } else if (left != strikes.end()) {
        more = left->left.empty() ? "" : " (" + left->left + ")";
      } else if (told->facts.unread.empty()) {
        return okStatus();
      } else {
        // What is damaged does not mend itself: one of them may be the entry of this strike.
        return unknown(fmt::format(" (its journal cannot be read in full: {})",
                                   fmt::join(told->facts.unread, "; ")));
      }
    }
    const Duration budget =
        giveUp && giveUp() ? kLastAnswer : std::max(lease_, kAskAgain) + kUndoBudget;
    if (now() - began >= budget) return unknown(more);
    (void)listen(kListen);
  }
}

}  // namespace faultline::hosts
