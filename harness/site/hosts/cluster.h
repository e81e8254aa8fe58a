#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/site/agents.h"
#include "harness/site/cluster.h"
#include "harness/site/hosts/choose_rails.h"
#include "harness/site/hosts/connection.h"
#include "harness/site/hosts/host_faults.h"
#include "harness/site/hosts/hosts_spec.h"

namespace faultline::hosts {

/// Hosts that are there already, each with an agent that ssh has started (docs/hosts.md).
class Cluster final : public site::Cluster {
 public:
  explicit Cluster(HostsSpec spec);
  ~Cluster() override;

  Status build(const GiveUp& giveUp) override;
  Result<std::unique_ptr<site::Processes>> startRanks(const std::vector<site::RankProcess>& ranks,
                                                      int logFd) override;
  Result<std::unique_ptr<site::Processes>> startGuards(
      const std::vector<site::GuardProcess>& guards, int logFd) override;
  Result<std::unique_ptr<injector::Fault>> makeFault(const std::string& kind,
                                                     const injector::FaultParameters& parameters,
                                                     const site::FaultTarget& target) override;
  Status readRailCounters(std::vector<site::RailCounters>& counters) override;
  BitsPerSecond railRate() const override { return choice_.rate; }
  std::string lost() const override { return lost_; }
  Result<std::map<std::string, std::string>> describe() const override;

 private:
  bool isLocal() const { return spec_.launcher == Launcher::kLocal; }
  int hosts() const { return static_cast<int>(spec_.names.size()); }
  const std::string& name(int host) const { return spec_.names[static_cast<std::size_t>(host)]; }
  Status connect(const GiveUp& giveUp);
  Status addAgents(const GiveUp& giveUp);
  Result<std::vector<wire::HostFacts>> readFacts(const GiveUp& giveUp);
  Status watchCounters(const GiveUp& giveUp);
  Status askFaultServices(const GiveUp& giveUp);
  template <typename Done>
  Status listenUntil(const Done& done, const GiveUp& giveUp, const char* what);
  Status lostAgent(int host, const std::string& what, bool lives);

  HostsSpec spec_;
  Choice choice_;
  std::vector<wire::HostFacts> facts_;
  std::vector<Connection> connections_;
  site::Agents agents_;
  HostFaults faults_;
  std::string lost_;                               // the first host that was
  Duration exitBudget_ = Connection::kExitBudget;  // what is left of it for all that are lost
};

}  // namespace faultline::hosts
