#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/site/agents.h"
#include "harness/site/cluster.h"
#include "harness/site/hosts/choose_rails.h"
#include "harness/site/hosts/connection.h"
#include "harness/site/hosts/connector.h"
#include "harness/site/hosts/host_faults.h"
#include "harness/site/hosts/hosts_spec.h"
#include "harness/site/hosts/launcher.h"
#include "harness/site/hosts/payload_count.h"

namespace faultline::hosts {

/// Hosts that are there already, each with an agent that a launcher has started (docs/hosts.md).
class Cluster final : public site::Cluster {
 public:
  explicit Cluster(HostsSpec spec);
  ~Cluster() override;

  Status build(const GiveUp& giveUp) override;
  Result<site::ClusterLook> look(const GiveUp& giveUp) override;
  Result<std::unique_ptr<site::Processes>> startRanks(const std::vector<site::RankProcess>& ranks,
                                                      int logFd) override;
  Result<std::unique_ptr<site::Processes>> startGuards(
      const std::vector<site::GuardProcess>& guards, int logFd) override;
  Result<std::unique_ptr<injector::Fault>> makeFault(const std::string& kind,
                                                     const injector::FaultParameters& parameters,
                                                     const site::FaultTarget& target) override;
  std::string folderThere(int node, const std::string& folder) const override;
  std::string sharedFolder() const override { return shared_; }
  Status readRailCounters(std::vector<site::RailCounters>& counters) override;
  Result<std::uint64_t> payloadDelivered() override;
  BitsPerSecond railRate() const override { return choice_.rate; }
  std::string lost() const override { return lost_; }
  Result<std::map<std::string, std::string>> describe() const override;

 private:
  bool isLocal() const { return spec_.launcher->thisMachine; }
  int hosts() const { return static_cast<int>(spec_.names.size()); }
  const std::string& name(int host) const { return spec_.names[static_cast<std::size_t>(host)]; }
  Status connect(const GiveUp& giveUp);
  Status arrived(Connector::Arrived host);
  Status readFacts(const GiveUp& giveUp);
  Status findAddresses(const GiveUp& giveUp);
  Status heard(const Status& status);
  Status watchCounters(const GiveUp& giveUp);
  Status askFaultServices(const GiveUp& giveUp);
  Status shareFolder(const GiveUp& giveUp);
  Status requirePrograms(const std::vector<site::GuardProcess>& guards);
  static constexpr Duration kAnswerBudget = 30s;
  static constexpr Duration kPause = 20ms;
  /// Until it is so of each host.
  Status listenUntil(const std::function<bool(int host)>& done, const GiveUp& giveUp,
                     const char* what);
  Status lostAgent(int host, const std::string& what, bool lives);
  Status chooseAmong(const std::vector<int>& usable, site::ClusterLook& look) const;

  HostsSpec spec_;
  Choice choice_;
  std::vector<wire::HostFacts> facts_;
  std::string token_;                      // in the names of folders that are this cluster's
  std::string shared_;                     // the one that all hosts see; empty: there is none
  std::map<int, Connection> connections_;  // by host, once its agent has greeted
  site::Agents agents_;
  HostFaults faults_;
  PayloadCount payload_;
  bool looksOnly_ = false;                         // at the hosts, and goes on without some
  std::map<int, Status> failed_;                   // then: why they cannot be used
  std::string lost_;                               // the first host that was
  Duration exitBudget_ = Connection::kExitBudget;  // what is left of it for all that are lost
};

}  // namespace faultline::hosts
