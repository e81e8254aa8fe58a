#include "harness/site/netns/cluster.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/refused_calls.h"
#include "harness/site/agent_processes.h"
#include "harness/site/netns/sysctl.h"
#include "injector/faults/registry.h"
#include "injector/netlink/address.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/shaper.h"

namespace faultline::netns {
namespace {

constexpr int kLoopbackIndex = 1;

// The kernel brings ports into operation in a work queue, which takes milliseconds.
constexpr Duration kOperationalBudget = 10s;
constexpr int kPauseMilliseconds = 1;
// A port that comes back is reachable only when its addresses are resolved again. What was sent
// into the dead port has begun that, and with the kernel's usual second between two questions the
// rail would stay out of use for up to a second after the repair; with 50 ms, seven total outages
// in a hundred took more than 50 ms longer than the fault. The patience is the usual one.
constexpr netlink::AddressQuestions kAddressQuestions{.pause = 10ms, .patience = 3s};

// One that has closed its messages is on its way out.
constexpr Duration kExitBudget = 200ms;

template <typename Process>
std::vector<int> nodesOf(const std::vector<Process>& processes) {
  std::vector<int> nodes;
  for (const Process& process : processes) nodes.push_back(process.node);
  return nodes;
}

struct Namespace {
  UniqueFd fd;
  std::unique_ptr<netlink::Socket> socket;
};

Result<Namespace> makeNamespace() {
  ASSIGN_OR_RETURN(UniqueFd fd, netlink::newNamespace());
  RETURN_IF_ERROR(writeSysctls(fd.get(), clusterSysctls()));
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::open(fd.get()));
  RETURN_IF_ERROR(netlink::setUp(socket, kLoopbackIndex, true));
  return Namespace{std::move(fd), std::make_unique<netlink::Socket>(std::move(socket))};
}

/// The kernel says only "not supported" when a module is missing; a user needs to know what to do.
Status explain(const Status& status) {
  if (status.ok() || status.code() == Code::kInvalidArgument) return status;
  if (isRefused("setns") || isRefused("unshare")) return status;  // which it names
  if (status.code() == Code::kPermissionDenied) {
    return status.withContext("a cluster of network namespaces needs root or a user namespace");
  }
  if (status.code() == Code::kUnsupported || status.code() == Code::kNotFound) {
    return Status(Code::kUnsupported,
                  status.message() +
                      "; this kernel lacks veth, bridge, htb or u32: `faultline doctor` tells "
                      "which");
  }
  return status;
}

}  // namespace

Result<std::unique_ptr<Cluster>> Cluster::create(const ClusterSpec& spec) {
  RETURN_IF_ERROR(spec.check());
  auto cluster = std::make_unique<Cluster>(spec);
  RETURN_IF_ERROR(cluster->build());
  return cluster;
}

Cluster::Cluster(const ClusterSpec& spec)
    : site::Cluster(site::plannedNetwork(spec.nodes, spec.rails)),
      spec_(spec),
      agents_([this](int node, const std::string& what, bool lives) {
        return lostAgent(node, what, lives);
      }) {}

Status Cluster::build(const GiveUp& giveUp) {
  agents_.giveUpWhen(giveUp);
  return explain(construct(giveUp)).withContext("make the cluster");
}

Status Cluster::construct(const GiveUp& giveUp) {
  RETURN_IF_ERROR(addSwitch());
  for (int node = 0; node < spec_.nodes; ++node) {
    RETURN_IF_ERROR(unlessGivenUp(giveUp, fmt::format("node {}", node)));
    const Status status = addNode(node);
    if (!status.ok()) return status.withContext(fmt::format("node {}", node));
  }
  for (int node = 0; node < spec_.nodes; ++node) {
    for (int rail = 0; rail < spec_.rails; ++rail) {
      counter_index_.emplace(railPortName(node, rail), counter_index_.size());
    }
  }
  ASSIGN_OR_RETURN(netlink::CounterFile file, netlink::CounterFile::open(switch_namespace_.get()));
  counter_file_.emplace(std::move(file));
  RETURN_IF_ERROR(awaitOperational(giveUp));
  return spec_.tooManyNeighbours() ? introduceNodes() : okStatus();
}

Cluster::~Cluster() {
  // The kernel would do it all by itself, some time later, under a lock that the next cluster
  // needs. With the links gone there is little left to do.
  if (!switch_socket_) return;
  for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) {
    (void)netlink::deleteNetDevice(*switch_socket_, managementPortIndex(node));
    for (int rail = 0; rail < spec_.rails; ++rail) {
      (void)netlink::deleteNetDevice(*switch_socket_, railPortIndex(node, rail));
    }
  }
}

Status Cluster::awaitOperational(const GiveUp& giveUp) {
  const TimePoint deadline = now() + kOperationalBudget;
  std::vector<netlink::Socket*> sockets{switch_socket_.get()};
  for (const Node& node : nodes_) sockets.push_back(node.socket.get());
  for (netlink::Socket* const socket : sockets) {
    while (true) {
      ASSIGN_OR_RETURN(const std::vector<netlink::NetDevice> links,
                       netlink::listNetDevices(*socket));
      const auto waiting =
          std::find_if(links.begin(), links.end(), [](const netlink::NetDevice& link) {
            return link.kind == "veth" && !netlink::isOperational(link);
          });
      if (waiting == links.end()) break;
      if (now() >= deadline) {
        return errorf(Code::kDeadlineExceeded, "{} did not come up within {}", waiting->name,
                      formatDuration(kOperationalBudget));
      }
      RETURN_IF_ERROR(unlessGivenUp(giveUp, waiting->name));
      ::poll(nullptr, 0, kPauseMilliseconds);
    }
  }
  return okStatus();
}

Status Cluster::addSwitch() {
  ASSIGN_OR_RETURN(Namespace made, makeNamespace());
  switch_namespace_ = std::move(made.fd);
  switch_socket_ = std::move(made.socket);
  const auto add = [&](const std::string& name, int ifindex) -> Status {
    RETURN_IF_ERROR(netlink::createBridge(*switch_socket_, name, ifindex));
    return netlink::setUp(*switch_socket_, ifindex, true);
  };
  RETURN_IF_ERROR(add(kManagementBridgeName, kManagementBridgeIndex));
  for (int rail = 0; rail < spec_.rails; ++rail) {
    RETURN_IF_ERROR(add(railBridgeName(rail), railBridgeIndex(rail)));
  }
  return okStatus();
}

int Cluster::nicIndex(int node, int rail) const {
  return spec_.coalesced_events ? railPortIndex(node, rail) : railIndex(rail);
}

Status Cluster::addNode(int index) {
  ASSIGN_OR_RETURN(Namespace made, makeNamespace());
  if (!spec_.congestion_control.empty()) {
    RETURN_IF_ERROR(setCongestionControl(made.fd.get(), spec_.congestion_control));
  }
  Node node;
  node.namespace_fd = std::move(made.fd);
  node.socket = std::move(made.socket);
  constexpr BitsPerSecond kUnshaped = 0;
  ASSIGN_OR_RETURN(
      node.management_mac,
      connect(node, {kManagementName, kManagementIndex, ClusterSpec::kEthernetMtu},
              {managementPortName(index), managementPortIndex(index), ClusterSpec::kEthernetMtu},
              kManagementBridgeIndex, managementAddress(index), kUnshaped));
  for (int rail = 0; rail < spec_.rails; ++rail) {
    ASSIGN_OR_RETURN(node.rail_macs.emplace_back(),
                     connect(node, {railName(rail), nicIndex(index, rail), spec_.mtu},
                             {railPortName(index, rail), railPortIndex(index, rail), spec_.mtu},
                             railBridgeIndex(rail), railAddress(index, rail), spec_.rail_rate));
  }
  nodes_.push_back(std::move(node));
  return okStatus();
}

Result<netlink::MacAddress> Cluster::connect(Node& node, const netlink::VethEnd& nic,
                                             const netlink::VethEnd& port, int bridge,
                                             const std::string& address, BitsPerSecond rate) {
  netlink::Socket& switch_side = *switch_socket_;
  RETURN_IF_ERROR(netlink::createVeth(switch_side, port, node.namespace_fd.get(), nic));
  RETURN_IF_ERROR(netlink::enslave(switch_side, port.ifindex, bridge));
  // A port that goes down is forgotten by the bridge, and what is still sent to it would be flooded
  // to all other nodes: load that no real fabric would see, and payload where there is none.
  RETURN_IF_ERROR(netlink::setUnicastFlood(switch_side, port.ifindex, false));
  // Without flooding a forgotten node that comes back and says nothing could not be reached until
  // the others ask for its address again, which takes them up to a minute.
  ASSIGN_OR_RETURN(const netlink::NetDevice made,
                   netlink::readNetDevice(*node.socket, nic.ifindex));
  RETURN_IF_ERROR(netlink::addStaticForwarding(switch_side, port.ifindex, made.mac));
  if (rate != 0) {
    RETURN_IF_ERROR(netlink::installShaper(*node.socket, nic.ifindex, rate));
    RETURN_IF_ERROR(netlink::installShaper(switch_side, port.ifindex, rate));
  }
  RETURN_IF_ERROR(netlink::addAddress(*node.socket, nic.ifindex, address, kPrefixLength));
  RETURN_IF_ERROR(netlink::setAddressQuestions(*node.socket, nic.ifindex, kAddressQuestions));
  RETURN_IF_ERROR(netlink::setUp(switch_side, port.ifindex, true));
  RETURN_IF_ERROR(netlink::setUp(*node.socket, nic.ifindex, true));
  return made.mac;
}

/// Tells all NICs of all others.
Status Cluster::introduceNodes() {
  for (int index = 0; index < spec_.nodes; ++index) {
    for (int other = 0; other < spec_.nodes; ++other) {
      if (other == index) continue;
      netlink::Socket& socket = nodeSocket(index);
      const Node& neighbour = nodes_[static_cast<std::size_t>(other)];
      RETURN_IF_ERROR(netlink::addNeighbour(socket, kManagementIndex, managementAddress(other),
                                            neighbour.management_mac));
      for (int rail = 0; rail < spec_.rails; ++rail) {
        RETURN_IF_ERROR(netlink::addNeighbour(socket, nicIndex(index, rail),
                                              railAddress(other, rail),
                                              neighbour.rail_macs[static_cast<std::size_t>(rail)]));
      }
    }
  }
  return okStatus();
}

int Cluster::nodeNamespace(int node) const {
  return nodes_.at(static_cast<std::size_t>(node)).namespace_fd.get();
}

netlink::Socket& Cluster::nodeSocket(int node) {
  return *nodes_.at(static_cast<std::size_t>(node)).socket;
}

netlink::LinkTarget Cluster::railTarget(int node, int rail) {
  netlink::LinkTarget target;
  target.nic = {&nodeSocket(node), nicIndex(node, rail)};
  target.attachment = {switch_socket_.get(), railPortIndex(node, rail)};
  for (int other = 0; other < spec_.nodes; ++other) {
    if (other != node) target.siblings.push_back(railPortIndex(other, rail));
  }
  return target;
}

netlink::LinkTarget Cluster::pathTarget(int node, int peer, int rail) {
  netlink::LinkTarget target = railTarget(node, rail);
  const netlink::LinkTarget other = railTarget(peer, rail);
  target.peer_nic = other.nic;
  target.peer_attachment = other.attachment;
  return target;
}

netlink::LinkTarget Cluster::managementTarget(int node) {
  netlink::LinkTarget target;
  target.nic = {&nodeSocket(node), kManagementIndex};
  target.attachment = {switch_socket_.get(), managementPortIndex(node)};
  for (int other = 0; other < spec_.nodes; ++other) {
    if (other != node) target.siblings.push_back(managementPortIndex(other));
  }
  return target;
}

Status Cluster::readRailCounters(std::vector<RailCounters>& counters) {
  counters.assign(nodes_.size() * static_cast<std::size_t>(spec_.rails), {});
  return counter_file_->read([&](std::string_view name, const netlink::LinkCounters& port) {
    const auto found = counter_index_.find(name);
    if (found != counter_index_.end()) counters[found->second] = {port.rx_bytes, port.tx_bytes};
  });
}

Status Cluster::needAgents(const std::vector<int>& nodes) {
  for (const int node : nodes) {
    if (agents_.has(node)) continue;
    launch::SpawnOptions options;
    options.arguments = {"faultline", "agent"};
    auto process = launch::Process::spawn(options);
    if (!process.ok()) {
      return process.status().withContext(fmt::format("start the agent of node {}", node));
    }
    const std::string network = fmt::format("/proc/{}/fd/{}", ::getpid(), nodeNamespace(node));
    RETURN_IF_ERROR(agents_.add(node, std::move(process->messages()), site::ClockOffset::same(),
                                {.networkNamespace = network}));
    agent_processes_.insert_or_assign(node, std::move(*process));
  }
  return agents_.awaitReady();
}

Status Cluster::lostAgent(int node, const std::string& what, bool lives) {
  std::string why = what;
  if (const auto process = agent_processes_.find(node); process != agent_processes_.end()) {
    if (lives) {
      why += ", and was killed";
    } else if (const auto ended = process->second.waitFor(kExitBudget);
               ended.ok() && !ended->ok()) {
      why = "is gone: " + ended->toString();  // and has not said why it ends
    }
    // One that lives, and is of no use any more, ends, and so does all that it has started.
    agent_processes_.erase(process);
  }
  return errorf(Code::kUnavailable, "the agent of node {} {}", node, why);
}

Result<std::unique_ptr<site::Processes>> Cluster::startRanks(
    const std::vector<site::RankProcess>& ranks, int logFd) {
  RETURN_IF_ERROR(needAgents(nodesOf(ranks)));
  return site::AgentProcesses::startRanks(agents_, ranks, logFd);
}

Result<std::unique_ptr<site::Processes>> Cluster::startGuards(
    const std::vector<site::GuardProcess>& guards, int logFd) {
  RETURN_IF_ERROR(needAgents(nodesOf(guards)));
  return site::AgentProcesses::startGuards(agents_, guards, logFd);
}

Result<std::unique_ptr<injector::Fault>> Cluster::makeFault(
    const std::string& kind, const injector::FaultParameters& parameters,
    const site::FaultTarget& target) {
  netlink::LinkTarget link = !target.rail  ? managementTarget(target.node)
                             : target.peer ? pathTarget(target.node, *target.peer, *target.rail)
                                           : railTarget(target.node, *target.rail);
  if (!target.startedWith.empty()) link.startedWith.push_back(target.startedWith);
  link.calledBy.push_back(fmt::format("FAULTLINE_NODE={}", target.node));
  if (target.rail) link.calledBy.push_back(fmt::format("FAULTLINE_RAIL={}", *target.rail));
  return injector::makeFault(kind, parameters, link);
}

Result<std::uint64_t> Cluster::payloadDelivered() {
  std::uint64_t sum = 0;
  for (int node = 0; node < spec_.nodes; ++node) {
    for (int rail = 0; rail < spec_.rails; ++rail) {
      ASSIGN_OR_RETURN(const netlink::ShaperState state,
                       netlink::readShaper(*switch_socket_, railPortIndex(node, rail)));
      sum += state.sent_bytes;
    }
  }
  return sum;
}

std::vector<std::string> Cluster::waysToLookInside(const std::string& nsenter) const {
  std::vector<std::string> ways;
  for (int node = 0; node < spec_.nodes; ++node) {
    ways.push_back(fmt::format("{} --net=/proc/{}/fd/{} ip addr    # node {}", nsenter, ::getpid(),
                               nodeNamespace(node), node));
  }
  return ways;
}

Result<std::map<std::string, std::string>> Cluster::describe() const {
  ASSIGN_OR_RETURN(auto description, readTcpSettings(nodeNamespace(0)));
  utsname kernel{};
  if (::uname(&kernel) == 0) description["kernel"] = kernel.release;
  description["cluster"] = "netns";
  description["mtu"] = std::to_string(spec_.mtu);
  description["rail_rate"] = spec_.rail_rate == 0 ? "unshaped" : formatRate(spec_.rail_rate);
  description["qdisc"] = spec_.rail_rate == 0 ? "none" : "htb (bulk + control), bfifo";
  if (spec_.rail_rate != 0) {
    const netlink::ShaperPlan plan = netlink::planShaper(spec_.rail_rate);
    description["burst_bytes"] = std::to_string(plan.bulk.burst);
    description["queue_bytes"] = std::to_string(plan.bulk_queue);
    description["control_rate"] = formatRate(plan.control.rate);
    description["control_tos"] = fmt::format("{:#04x}", netlink::kControlTos);
  }
  return description;
}

}  // namespace faultline::netns
