#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/site/cluster.h"
#include "harness/site/rdma_vm/laboratory.h"

namespace faultline::rdma_vm {

/// A laboratory as the cluster of a run.
class Cluster final : public site::Cluster {
 public:
  explicit Cluster(const VmSpec& spec);

  Status build(const GiveUp& giveUp) override;
  Result<std::unique_ptr<site::Processes>> startRanks(const std::vector<site::RankProcess>& ranks,
                                                      int logFd) override;
  Result<std::unique_ptr<site::Processes>> startGuards(
      const std::vector<site::GuardProcess>& guards, int logFd) override;
  Result<std::unique_ptr<injector::Fault>> makeFault(const std::string& kind,
                                                     const injector::FaultParameters& parameters,
                                                     const site::FaultTarget& target) override;
  /// Counted by the switch between the guests.
  Status readRailCounters(std::vector<site::RailCounters>& counters) override;
  Result<std::map<std::string, std::string>> describe() const override;

 private:
  VmSpec spec_;
  std::unique_ptr<Laboratory> laboratory_;  // after build()
};

}  // namespace faultline::rdma_vm
