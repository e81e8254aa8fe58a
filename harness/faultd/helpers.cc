#include "harness/faultd/helpers.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/printable.h"
#include "base/version.h"
#include "harness/agent/fault_holder.h"
#include "harness/faultd/caller.h"
#include "harness/launch/process.h"
#include "harness/strike/held_strike.h"
#include "harness/strike/left_strikes.h"
#include "injector/faults/registry.h"
#include "injector/netlink/namespace.h"
#include "injector/safety/policy_file.h"
#include "injector/safety/strike.h"

namespace faultline::faultd {
namespace {

constexpr Duration kTaskPatience = 10s;
constexpr Duration kLockPatience = 5s;

/// As the end of the channel.
void endOnSignal(int /*number*/) { ::shutdown(launch::kMessagesFd, SHUT_RDWR); }

/// Whether the service has closed its end, or has died.
bool serviceGone() {
  pollfd channel{launch::kMessagesFd, POLLRDHUP, 0};
  return ::poll(&channel, 1, 0) > 0 && (channel.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/// What all children begin with.
Result<Task> begin(launch::MessageChannel& service) {
  // The end of the service is seen by the channel, and then there is something to do.
  ::prctl(PR_SET_PDEATHSIG, 0);
  struct sigaction action {};
  action.sa_handler = endOnSignal;
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  ASSIGN_OR_RETURN(const nlohmann::json first, service.receiveWithin(kTaskPatience));
  return wire::fromJson<Task>(first);
}

launch::LocalPeer peerOf(const Task& task) {
  return {.pid = static_cast<pid_t>(task.pid),
          .uid = task.uid,
          .groups = {task.groups.begin(), task.groups.end()}};
}

strike::Files filesOf(const Task& task) { return {.policy = task.policy, .journal = task.journal}; }

Result<std::unique_ptr<injector::Fault>> makeStrike(const Task& task) {
  if (!task.strike) return errorf(Code::kInternal, "a holder without a strike");
  ASSIGN_OR_RETURN(strike::Asker asker, askerOf(peerOf(task), task.started));
  const wire::ServiceStrike& wanted = *task.strike;
  strike::Order order{.kind = injector::findFaultKind(wanted.kind),
                      .parameters = wanted.parameters,
                      .target = {.interface = wanted.interface},
                      .length = wanted.longest,
                      .keep = wanted.keep};
  if (order.kind == nullptr || order.kind->makeOnHost == nullptr) {
    return errorf(Code::kUnsupported, "an interface of a host has no fault '{}'",
                  printableMessage(wanted.kind));
  }
  for (const std::string& address : order.keep) {
    if (safety::isAddress(address)) continue;
    return errorf(Code::kInvalidArgument, "keep: '{}' is no address, like 10.0.0.1", address);
  }
  ASSIGN_OR_RETURN(
      auto held, strike::HeldStrike::make(order, std::move(asker), filesOf(task), strike::newId()));
  held->endByItself();
  held->stopWhen(serviceGone);
  held->onChange(log);
  return std::unique_ptr<injector::Fault>(std::move(held));
}

wire::InterfaceForecast forecast(netlink::Socket& socket, const std::string& interface,
                                 const Task& task, const safety::Policy& policy,
                                 const safety::Kept& kept, const strike::Asker& asker) {
  const auto why = [&]() -> Status {
    ASSIGN_OR_RETURN(const auto present, safety::presentTargets(socket));
    ASSIGN_OR_RETURN(const safety::Target target,
                     safety::choose(present, {.interface = interface}));
    return strike::allowed(socket, target, policy.kinds.front(), policy.longest, policy,
                           task.question.keep, kept, asker);
  }();
  return {interface, why.ok() ? "" : why.message()};
}

Result<wire::ServiceFacts> factsFor(const Task& task) {
  wire::ServiceFacts facts{.program = std::string(versionNumber())};
  const auto kinds = strike::hostFaults();
  facts.kinds = {kinds.begin(), kinds.end()};
  const auto asker = askerOf(peerOf(task), task.started);
  if (asker.ok()) {
    facts.user = asker->user;
    facts.job = asker->job;
  }
  ASSIGN_OR_RETURN(const safety::Kept kept, safety::Journal::look(task.journal).read());
  for (const safety::Entry& entry : kept.entries) {
    facts.strikes.push_back({.id = entry.id,
                             .kind = entry.kind,
                             .interface = entry.target.interface,
                             .user = entry.user,
                             .job = entry.job,
                             .held = safety::isHeld(entry),
                             .left = entry.left});
  }
  for (const safety::Kept::Strange& strange : kept.strange) {
    if (strange.damaged) facts.unread.push_back(strange.path + ": " + strange.why);
  }
  const auto policy = safety::readPolicy(task.policy, kinds);
  if (!policy.ok()) {
    facts.whyNoPolicy = policy.status().message();
    return facts;
  }
  facts.policy = {.words = safety::inWords(*policy),
                  .kinds = policy->kinds,
                  .longest = policy->longest,
                  .mostOfNode = policy->mostOfNode,
                  .mostOfJob = policy->mostOfJob};
  const Status may = asker.ok() ? safety::mayAsk(*policy, *asker->caller) : asker.status();
  if (!may.ok()) {
    facts.whyNot = may.message();
    return facts;
  }
  ASSIGN_OR_RETURN(const UniqueFd here, netlink::currentNamespace());
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::open(here.get()));
  std::vector<std::string> interfaces = task.question.interfaces;
  if (interfaces.empty()) {
    ASSIGN_OR_RETURN(const auto present, safety::presentTargets(socket));
    for (const safety::Target& target : present) interfaces.push_back(target.interface);
  }
  for (const std::string& interface : interfaces) {
    facts.interfaces.push_back(forecast(socket, interface, task, *policy, kept, *asker));
  }
  return facts;
}

Status undoAll(const Task& task) {
  ASSIGN_OR_RETURN(safety::Journal journal, safety::Journal::open(task.journal));
  ASSIGN_OR_RETURN(const UniqueFd here, netlink::currentNamespace());
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::open(here.get()));
  ASSIGN_OR_RETURN(const safety::Kept kept, journal.read());
  for (const safety::Entry& entry : kept.entries) {
    if (std::ranges::find(task.undo, entry.id) == task.undo.end()) continue;
    const strike::Became became =
        strike::restoreOne(socket, journal, entry, /*force=*/false, kLockPatience);
    if (became.word == "held") continue;
    log(fmt::format("{}: {}: {}", became.word, safety::inWords(entry), became.note));
  }
  return okStatus();
}

}  // namespace

void log(std::string line) {
  // What a client has said must not look like another line.
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  std::fputs(fmt::format("faultd: {}\n", printableMessage(line)).c_str(), stderr);
}

int holderMain() {
  launch::MessageChannel service{UniqueFd(launch::kMessagesFd)};
  const auto task = begin(service);
  if (!task.ok()) return 1;
  auto strike = makeStrike(*task);
  (void)agent::holdFault(service, std::move(strike));  // taken back with the end of it
  return 0;
}

int answerMain() {
  launch::MessageChannel service{UniqueFd(launch::kMessagesFd)};
  const auto task = begin(service);
  if (!task.ok()) return 1;
  const auto facts = factsFor(*task);
  const wire::FromService said =
      facts.ok() ? wire::FromService(*facts)
                 : wire::FromService(wire::HolderBroken{wire::Outcome::of(facts.status())});
  return service.send(wire::toJson(said)).ok() ? 0 : 1;
}

int undoMain() {
  launch::MessageChannel service{UniqueFd(launch::kMessagesFd)};
  const auto task = begin(service);
  if (!task.ok()) return 1;
  const Status undone = undoAll(*task);
  if (!undone.ok()) log(fmt::format("what was left is not undone yet: {}", undone.message()));
  return undone.ok() ? 0 : 1;
}

}  // namespace faultline::faultd
