#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "harness/launch/process.h"
#include "harness/site/agents.h"
#include "harness/site/cluster.h"
#include "harness/site/netns/cluster_plan.h"
#include "injector/netlink/counters.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/link_target.h"
#include "injector/netlink/shaper_plan.h"
#include "injector/netlink/socket.h"

namespace faultline::netns {

using site::RailCounters;

/// A cluster inside this machine: a network namespace per node and one for the switches, each rail
/// a bridge with a veth pair to every node, shaped at both ends, and a management network. All
/// namespaces are without a name: held by descriptors of this object (close-on-exec) and by the
/// processes in them, so that the kernel frees everything when the last holder dies, however it
/// dies. Not thread-safe: the netlink sockets are shared by all calls.
class Cluster final : public site::Cluster {
 public:
  /// Builds it; all ports are up and forward when this returns. Errors: kInvalidArgument for the
  /// spec, kPermissionDenied without the privilege (see enterPrivileges()), kUnsupported when the
  /// kernel lacks a mechanism. Nothing is left behind after an error.
  static Result<std::unique_ptr<Cluster>> create(const ClusterSpec& spec);
  /// One that is not there yet.
  explicit Cluster(const ClusterSpec& spec);
  ~Cluster() override;
  Status build(const GiveUp& giveUp = {}) override;

  const ClusterSpec& spec() const { return spec_; }

  /// The namespace in which the ranks of a node run (launch::SpawnOptions::namespace_fd).
  int nodeNamespace(int node) const;
  netlink::Socket& nodeSocket(int node);
  netlink::Socket& switchSocket() { return *switch_socket_; }

  /// The link of one NIC, for the injector. Valid as long as the cluster.
  netlink::LinkTarget railTarget(int node, int rail);
  /// The same with the link of `peer` as the other end of a path.
  netlink::LinkTarget pathTarget(int node, int peer, int rail);
  /// The link of the node to the management network.
  netlink::LinkTarget managementTarget(int node);

  Result<std::unique_ptr<site::Processes>> startRanks(const std::vector<site::RankProcess>& ranks,
                                                      int logFd) override;
  Result<std::unique_ptr<site::Processes>> startGuards(
      const std::vector<site::GuardProcess>& guards, int logFd) override;
  Result<std::unique_ptr<injector::Fault>> makeFault(const std::string& kind,
                                                     const injector::FaultParameters& parameters,
                                                     const site::FaultTarget& target) override;

  /// In one question to the kernel; counted at the switch.
  Status readRailCounters(std::vector<RailCounters>& counters) override;
  /// What has left the switch in the bulk class.
  Result<std::uint64_t> payloadDelivered() override;
  /// Of messages that go through the control class of the rails.
  int controlTos() const override { return netlink::kControlTos; }

  /// Besides: "qdisc", "burst_bytes", "queue_bytes", "tcp_rmem", ...
  Result<std::map<std::string, std::string>> describe() const override;
  std::vector<std::string> waysToLookInside(const std::string& nsenter) const override;

 private:
  struct Node {
    UniqueFd namespace_fd;
    std::unique_ptr<netlink::Socket> socket;
    netlink::MacAddress management_mac{};
    std::vector<netlink::MacAddress> rail_macs;
  };
  Status construct(const GiveUp& giveUp);
  Status addSwitch();
  Status addNode(int index);
  int nicIndex(int node, int rail) const;
  Status awaitOperational(const GiveUp& giveUp);
  /// Returns the address of the NIC.
  Result<netlink::MacAddress> connect(Node& node, const netlink::VethEnd& nic,
                                      const netlink::VethEnd& port, int bridge,
                                      const std::string& address, BitsPerSecond rate);
  Status introduceNodes();
  /// Starts the agents of those nodes that have none.
  Status needAgents(const std::vector<int>& nodes);
  Status lostAgent(int node, const std::string& what, bool lives);

  ClusterSpec spec_;
  UniqueFd switch_namespace_;
  std::unique_ptr<netlink::Socket> switch_socket_;
  std::vector<Node> nodes_;
  std::optional<netlink::CounterFile> counter_file_;
  std::map<std::string, std::size_t, std::less<>> counter_index_;  // of readRailCounters, by port
  std::map<int, launch::Process> agent_processes_;                 // by node
  site::Agents agents_;
};

}  // namespace faultline::netns
