#include "harness/site/hosts/cluster.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/units.h"
#include "harness/site/agent_processes.h"
#include "injector/faults/registry.h"

namespace faultline::hosts {
namespace {

// For ssh to connect and authenticate, on a host that is busy, too; ssh itself gives up before.
constexpr Duration kConnectBudget = 30s;
constexpr Duration kAnswerBudget = 30s;
constexpr Duration kPause = 20ms;
constexpr Duration kCounterInterval = 20ms;  // as the bins of the series
// For agents to end what they have started, and ssh to tell.
constexpr Duration kEndBudget = 2s;

/// What fault services call it, for people.
std::string runName() {
  utsname system{};
  return fmt::format("a run of process {} at {}", ::getpid(),
                     ::uname(&system) == 0 ? system.nodename : "?");
}

std::string signedTime(Duration time) {
  const std::string text = formatDuration(time < Duration::zero() ? -time : time);
  return (time < Duration::zero() ? "-" : "+") + text;
}

}  // namespace

Cluster::Cluster(HostsSpec spec)
    : site::Cluster({}),
      spec_(std::move(spec)),
      agents_([this](int host, const std::string& what, bool lives) {
        return lostAgent(host, what, lives);
      }),
      faults_(agents_, spec_.names, network(), spec_.lease, runName()) {}

Cluster::~Cluster() {
  for (Connection& connection : connections_) connection.hangUp();
  const TimePoint deadline = now() + kEndBudget;
  for (Connection& connection : connections_) {
    connection.awaitEnd(std::max(deadline - now(), Duration::zero()));
  }
}

Status Cluster::build(const GiveUp& giveUp) {
  agents_.giveUpWhen(giveUp);
  RETURN_IF_ERROR(connect(giveUp));
  RETURN_IF_ERROR(addAgents(giveUp));
  ASSIGN_OR_RETURN(facts_, readFacts(giveUp));
  if (isLocal()) {
    choice_ = loopbackRails(spec_);
  } else {
    ASSIGN_OR_RETURN(choice_, chooseRails(spec_, facts_));
  }
  setNetwork(choice_.network);
  RETURN_IF_ERROR(askFaultServices(giveUp));
  return isLocal() ? okStatus() : watchCounters(giveUp);
}

Status Cluster::connect(const GiveUp& giveUp) {
  std::error_code error;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return errorf(Code::kIo, "find the program that runs: {}", error.message());
  for (const std::string& host : spec_.names) {
    ASSIGN_OR_RETURN(Connection connection,
                     Connection::start(host, agentCommand(spec_, host, own)));
    connections_.push_back(std::move(connection));
  }
  const TimePoint deadline = now() + kConnectBudget;
  std::vector<pollfd> waiting;
  for (const Connection& connection : connections_) waiting.push_back({connection.fd(), POLLIN, 0});
  int left = hosts();
  while (left > 0) {
    RETURN_IF_ERROR(unlessGivenUp(giveUp, "connect to the hosts"));
    ::poll(waiting.data(), waiting.size(), static_cast<int>(toMilliseconds(kPause)));
    for (std::size_t host = 0; host < waiting.size(); ++host) {
      if (waiting[host].fd < 0 || waiting[host].revents == 0) continue;
      const std::optional<Status> greeted = connections_[host].greeted();
      if (!greeted) continue;
      RETURN_IF_ERROR(*greeted);
      waiting[host].fd = -1;
      --left;
    }
    if (left == 0 || now() < deadline) continue;
    const auto silent =
        std::ranges::find_if(waiting, [](const pollfd& one) { return one.fd >= 0; });
    return errorf(Code::kDeadlineExceeded, "host {}: its agent has not come within {}",
                  name(static_cast<int>(silent - waiting.begin())), formatDuration(kConnectBudget));
  }
  return okStatus();
}

template <typename Done>
Status Cluster::listenUntil(const Done& done, const GiveUp& giveUp, const char* what) {
  const TimePoint deadline = now() + kAnswerBudget;
  for (int host = 0; host < hosts(); ++host) {
    while (!done(host)) {
      RETURN_IF_ERROR(agents_.listen(kPause));
      RETURN_IF_ERROR(unlessGivenUp(giveUp, what));
      if (now() < deadline) continue;
      return errorf(Code::kDeadlineExceeded, "host {}: {}: no answer within {}", name(host), what,
                    formatDuration(kAnswerBudget));
    }
  }
  return okStatus();
}

Status Cluster::addAgents(const GiveUp& giveUp) {
  for (int host = 0; host < hosts(); ++host) {
    // Of this machine the first stands for all, and the clock is ours.
    const std::string lock = isLocal() && host > 0 ? "" : "host";
    const site::ClockOffset clock = isLocal() ? site::ClockOffset::same() : site::ClockOffset();
    RETURN_IF_ERROR(agents_.add(host, connections_[static_cast<std::size_t>(host)].takeChannel(),
                                clock, {.lock = lock, .lease = spec_.lease}));
  }
  return listenUntil([this](int host) { return agents_.isReady(host); }, giveUp,
                     "get its agent ready");
}

Result<std::vector<wire::HostFacts>> Cluster::readFacts(const GiveUp& giveUp) {
  for (int host = 0; host < hosts(); ++host) RETURN_IF_ERROR(agents_.askForFacts(host));
  RETURN_IF_ERROR(listenUntil([this](int host) { return agents_.toldFacts(host).has_value(); },
                              giveUp, "ask what it is like"));
  std::vector<wire::HostFacts> facts;
  for (int host = 0; host < hosts(); ++host) facts.push_back(*agents_.toldFacts(host));
  return facts;
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
  Connection& connection = connections_[static_cast<std::size_t>(host)];
  const std::string who = isLocal() ? "its agent" : "ssh";
  const std::string left = faults_.leftAt(host);
  std::string why = fmt::format("host {} (node {}) is lost{}: its agent {}", name(host), host,
                                left.empty() ? "" : " " + left, what);
  // Whatever it does now ends with its lifeline, or its lease.
  connection.hangUp();
  if (!lives) {
    const TimePoint before = now();
    why += fmt::format(" ({}: {})", who, connection.howItEnded(exitBudget_));
    exitBudget_ = std::max(exitBudget_ - (now() - before), Duration::zero());
  }
  if (lost_.empty()) lost_ = why;
  return Status(Code::kUnavailable, why);
}

Result<std::unique_ptr<site::Processes>> Cluster::startRanks(
    const std::vector<site::RankProcess>& ranks, int logFd) {
  agents_.logTo(logFd);
  std::vector<site::RankProcess> marked = ranks;
  for (site::RankProcess& rank : marked) rank.environment.insert(faults_.markOf(rank.node));
  return site::AgentProcesses::startRelayedRanks(agents_, marked);
}

Result<std::unique_ptr<site::Processes>> Cluster::startGuards(
    const std::vector<site::GuardProcess>& /*guards*/, int /*logFd*/) {
  return errorf(Code::kUnsupported, "hosts run no programs that are not ours yet");
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

Result<std::map<std::string, std::string>> Cluster::describe() const {
  std::map<std::string, std::string> description = choice_.words;
  description["cluster"] = isLocal() ? "hosts, all of them this machine" : "hosts, by ssh";
  description["rail_rate"] = choice_.rate == 0 ? "not known" : formatRate(choice_.rate);
  description["faults"] = faults_.inWords();
  description["clock_error"] = formatDuration(agents_.clockError());
  for (int host = 0; host < hosts(); ++host) {
    const wire::HostFacts& facts = facts_[static_cast<std::size_t>(host)];
    std::string text =
        fmt::format("{}: {}, {} cores, {}", name(host), facts.hostname, facts.cores, facts.kernel);
    if (const auto clock = agents_.clockOf(host)) {
      text += fmt::format(", clock {} ahead of the controller's, to within {}",
                          signedTime(clock->offset), formatDuration(clock->error));
    }
    description[fmt::format("host_{}", host)] = std::move(text);
  }
  return description;
}

}  // namespace faultline::hosts
