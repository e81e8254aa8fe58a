#include "harness/site/hosts/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "base/units.h"
#include "harness/site/agent_processes.h"
#include "harness/site/hosts/host_names.h"
#include "harness/site/hosts/name_lookup.h"
#include "injector/faults/registry.h"

namespace faultline::hosts {
namespace {

constexpr Duration kNamesBudget = 30s;       // of all of them together
constexpr Duration kCounterInterval = 20ms;  // as the bins of the series
// For agents to end what they have started, and ssh to tell.
constexpr Duration kEndBudget = 2s;

}  // namespace

Cluster::Cluster(HostsSpec spec)
    : site::Cluster({}),
      spec_(std::move(spec)),
      token_(fmt::format("{:08x}{:08x}", std::random_device()(), std::random_device()())),
      agents_([this](int host, const std::string& what, bool lives) {
        return lostAgent(host, what, lives);
      }),
      faults_(agents_, spec_.names, network(), spec_.lease, spec_.holder) {}

Cluster::~Cluster() {
  for (auto& [host, connection] : connections_) connection.hangUp();
  const TimePoint deadline = now() + kEndBudget;
  for (auto& [host, connection] : connections_) {
    connection.awaitEnd(std::max(deadline - now(), Duration::zero()));
  }
}

Status Cluster::build(const GiveUp& giveUp) {
  if (spec_.launcher->ready != nullptr) RETURN_IF_ERROR(spec_.launcher->ready(spec_));
  RETURN_IF_ERROR(connect(giveUp));
  RETURN_IF_ERROR(readFacts(giveUp));
  if (isLocal()) {
    choice_ = loopbackRails(spec_);
  } else {
    RETURN_IF_ERROR(findAddresses(giveUp));
    ASSIGN_OR_RETURN(choice_, chooseRails(spec_, facts_));
  }
  setNetwork(choice_.network);
  RETURN_IF_ERROR(askFaultServices(giveUp));
  if (!spec_.folder.empty()) RETURN_IF_ERROR(shareFolder(giveUp));
  return isLocal() ? okStatus() : watchCounters(giveUp);
}

/// Who looks only goes on without those that are lost.
Status Cluster::heard(const Status& status) {
  return looksOnly_ && !failed_.empty() ? okStatus() : status;
}

Status Cluster::connect(const GiveUp& giveUp) {
  agents_.giveUpWhen(giveUp);
  std::error_code error;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return errorf(Code::kIo, "find the program that runs: {}", error.message());
  Connector connector(spec_, own);
  while (!connector.done()) {
    RETURN_IF_ERROR(unlessGivenUp(giveUp, "connect to the hosts"));
    for (Connector::Arrived& host : connector.step(kPause)) {
      RETURN_IF_ERROR(heard(arrived(std::move(host))));
    }
    // Those that are there already wait for their first message, and then for a sign of life.
    RETURN_IF_ERROR(heard(agents_.listen(Duration::zero())));
  }
  return listenUntil([this](int host) { return agents_.isReady(host); }, giveUp,
                     "get its agent ready");
}

Status Cluster::arrived(Connector::Arrived arrived) {
  if (!arrived.connection.ok()) {
    if (looksOnly_) failed_.emplace(arrived.host, arrived.connection.status());
    return arrived.connection.status();
  }
  Connection& connection =
      connections_.emplace(arrived.host, *std::move(arrived.connection)).first->second;
  // Of this machine the first stands for all, and the clock is ours. Who looks disturbs no run.
  const bool locks = !looksOnly_ && (!isLocal() || arrived.host == 0);
  return agents_.add(
      arrived.host, connection.takeChannel(),
      isLocal() ? site::ClockOffset::same() : site::ClockOffset(),
      {.lock = locks ? "host" : "", .holder = locks ? spec_.holder : "", .lease = spec_.lease});
}

Status Cluster::listenUntil(const std::function<bool(int host)>& done, const GiveUp& giveUp,
                            const char* what) {
  const TimePoint deadline = now() + kAnswerBudget;
  for (int host = 0; host < hosts(); ++host) {
    while (!failed_.contains(host) && !done(host)) {
      RETURN_IF_ERROR(heard(agents_.listen(kPause)));
      RETURN_IF_ERROR(unlessGivenUp(giveUp, what));
      if (now() < deadline) continue;
      const Status late = errorf(Code::kDeadlineExceeded, "host {}: {}: no answer within {}",
                                 name(host), what, formatDuration(kAnswerBudget));
      if (!looksOnly_) return late;
      failed_.emplace(host, late);
    }
  }
  return okStatus();
}

Status Cluster::readFacts(const GiveUp& giveUp) {
  for (int host = 0; host < hosts(); ++host) {
    if (!failed_.contains(host)) RETURN_IF_ERROR(heard(agents_.askForFacts(host)));
  }
  RETURN_IF_ERROR(listenUntil([this](int host) { return agents_.toldFacts(host).has_value(); },
                              giveUp, "ask what it is like"));
  facts_.resize(spec_.names.size());
  for (int host = 0; host < hosts(); ++host) {
    if (failed_.contains(host)) continue;
    facts_[static_cast<std::size_t>(host)] = *agents_.toldFacts(host);
  }
  return okStatus();
}

/// Agents are heard meanwhile, or their leases would end.
Status Cluster::findAddresses(const GiveUp& giveUp) {
  if (!spec_.management.empty()) return okStatus();
  std::vector<std::size_t> unknown;
  std::vector<std::string> names;
  for (std::size_t host = 0; host < facts_.size(); ++host) {
    if (isReachedFromOutside(facts_[host])) continue;
    unknown.push_back(host);
    names.push_back(spec_.names[host]);
  }
  const NameLookup lookup(names);
  const TimePoint deadline = now() + kNamesBudget;
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    auto addresses = lookup.answer(i);
    for (; !addresses; addresses = lookup.answer(i)) {
      RETURN_IF_ERROR(agents_.listen(kPause));
      RETURN_IF_ERROR(unlessGivenUp(giveUp, "resolve the names of the hosts"));
      if (now() < deadline) continue;
      return errorf(Code::kDeadlineExceeded,
                    "host {}: its name has not been resolved on this machine within {}: is a name "
                    "server in /etc/resolv.conf dead? Or name the management network by "
                    "'management: NAME': no name is resolved then",
                    names[i], formatDuration(kNamesBudget));
    }
    findReachedAt(*addresses, facts_[unknown[i]]);
  }
  return okStatus();
}

Result<site::ClusterLook> Cluster::look(const GiveUp& giveUp) {
  looksOnly_ = true;
  RETURN_IF_ERROR(connect(giveUp));
  RETURN_IF_ERROR(readFacts(giveUp));
  site::ClusterLook look;
  std::vector<int> usable;
  for (int host = 0; host < hosts(); ++host) {
    site::NodeLook& node = look.nodes.emplace_back(site::NodeLook{.name = name(host)});
    if (const auto failed = failed_.find(host); failed != failed_.end()) {
      node.usable = failed->second;
      continue;
    }
    usable.push_back(host);
    const wire::HostFacts& facts = facts_[static_cast<std::size_t>(host)];
    node.hostname = facts.hostname;
    node.kernel = facts.kernel;
    node.cores = facts.cores;
    node.agentMemory = facts.agentMemory;
    if (const auto clock = agents_.clockOf(host)) {
      node.clockAhead = clock->offset;
      node.clockError = clock->error;
    }
  }
  if (!usable.empty()) look.rails = chooseAmong(usable, look);
  return look;
}

/// The rails that these hosts would have without the others.
Status Cluster::chooseAmong(const std::vector<int>& usable, site::ClusterLook& look) const {
  HostsSpec some = spec_;
  some.names.clear();
  std::vector<wire::HostFacts> facts;
  for (const int host : usable) {
    some.names.push_back(name(host));
    facts.push_back(facts_[static_cast<std::size_t>(host)]);
  }
  Choice choice;
  if (isLocal()) {
    choice = loopbackRails(some);
  } else {
    ASSIGN_OR_RETURN(choice, chooseRails(some, facts));
  }
  const auto inWords = [](const site::Nic& nic) { return nic.interface + " " + nic.address; };
  for (std::size_t i = 0; i < usable.size(); ++i) {
    site::NodeLook& node = look.nodes[static_cast<std::size_t>(usable[i])];
    node.management = inWords(choice.network[i].management);
    for (const site::Nic& rail : choice.network[i].rails) node.rails.push_back(inWords(rail));
  }
  look.words = std::move(choice.words);
  return okStatus();
}

Status Cluster::askFaultServices(const GiveUp& giveUp) {
  RETURN_IF_ERROR(faults_.askServices());
  return listenUntil([this](int host) { return agents_.toldFaultService(host).has_value(); },
                     giveUp, "ask its fault service");
}

Status Cluster::watchCounters(const GiveUp& giveUp) {
  for (int host = 0; host < hosts(); ++host) {
    std::vector<std::string> interfaces;
    for (const site::Nic& rail : network()[static_cast<std::size_t>(host)].rails) {
      interfaces.push_back(rail.interface);
    }
    RETURN_IF_ERROR(agents_.watchCounters(host, interfaces, kCounterInterval));
  }
  return listenUntil([this](int host) { return !agents_.toldCounters(host).empty(); }, giveUp,
                     "read its counters");
}

Status Cluster::lostAgent(int host, const std::string& what, bool lives) {
  Connection& connection = connections_.at(host);
  const std::string left = faults_.leftAt(host);
  std::string why = fmt::format("host {} (node {}) is lost{}: its agent {}", name(host), host,
                                left.empty() ? "" : " " + left, what);
  // Whatever it does now ends with its lifeline, or its lease.
  connection.hangUp();
  if (!lives) {
    const TimePoint before = now();
    why += fmt::format(" ({}: {})", spec_.launcher->program, connection.howItEnded(exitBudget_));
    exitBudget_ = std::max(exitBudget_ - (now() - before), Duration::zero());
  }
  if (lost_.empty()) lost_ = why;
  if (looksOnly_) failed_.emplace(host, Status(Code::kUnavailable, why));
  return Status(Code::kUnavailable, why);
}

Result<std::unique_ptr<site::Processes>> Cluster::startRanks(
    const std::vector<site::RankProcess>& ranks, int logFd) {
  agents_.logTo(logFd, spec_.names);
  std::vector<site::RankProcess> marked = ranks;
  for (site::RankProcess& rank : marked) rank.environment.insert(faults_.markOf(rank.node));
  return site::AgentProcesses::startRelayedRanks(agents_, marked);
}

Result<std::unique_ptr<injector::Fault>> Cluster::makeFault(
    const std::string& kind, const injector::FaultParameters& parameters,
    const site::FaultTarget& target) {
  const injector::FaultKind* const row = injector::findFaultKind(kind);
  if (row == nullptr) return errorf(Code::kNotFound, "there is no fault '{}'", kind);
  return faults_.make(*row, parameters, target, choice_.rate);
}

Status Cluster::readRailCounters(std::vector<site::RailCounters>& counters) {
  const std::size_t rails = network().front().rails.size();
  counters.assign(static_cast<std::size_t>(hosts()) * rails, {});
  for (int host = 0; host < hosts(); ++host) {
    const std::vector<wire::PortCounters>& told = agents_.toldCounters(host);
    for (std::size_t rail = 0; rail < std::min(rails, told.size()); ++rail) {
      counters[static_cast<std::size_t>(host) * rails + rail] = {told[rail].sent,
                                                                 told[rail].received};
    }
  }
  return okStatus();
}

Result<std::uint64_t> Cluster::payloadDelivered() {
  if (isLocal()) {
    return errorf(Code::kUnsupported, "with 'launcher: local' nothing counts what a rail carries");
  }
  std::vector<site::RailCounters> rails;
  RETURN_IF_ERROR(readRailCounters(rails));
  std::uint64_t received = 0;
  for (const site::RailCounters& rail : rails) received += rail.rx_bytes;
  return payload_.add(now(), received);
}

Result<std::map<std::string, std::string>> Cluster::describe() const {
  std::map<std::string, std::string> description = choice_.words;
  description["cluster"] = fmt::format("hosts: {}", spec_.launcher->doc);
  description["rail_rate"] = choice_.rate == 0 ? "not known" : formatRate(choice_.rate);
  description["faults"] = faults_.inWords();
  description["clock_error"] = formatDuration(agents_.clockError());
  for (int host = 0; host < hosts(); ++host) {
    const wire::HostFacts& facts = facts_[static_cast<std::size_t>(host)];
    std::string text =
        fmt::format("{}: {}, {} cores, {}", name(host), facts.hostname, facts.cores, facts.kernel);
    if (const auto clock = agents_.clockOf(host)) {
      text += fmt::format(", clock {}{} ahead of the controller's, to within {}",
                          clock->offset < Duration::zero() ? "" : "+", approximately(clock->offset),
                          approximately(clock->error));
    }
    description[fmt::format("host_{}", host)] = std::move(text);
  }
  return description;
}

}  // namespace faultline::hosts
