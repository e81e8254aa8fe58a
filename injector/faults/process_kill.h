#pragma once

#include <vector>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/node_processes.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// All processes of the NIC's namespace, or those that the target chooses, are killed. Evidence:
/// each of them has ended, and a new search finds none.
class ProcessKill final : public Fault {
 public:
  ProcessKill(const FaultParameters& parameters, const netlink::LinkTarget& target);
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override { return "SIGKILL to every process of the namespace"; }

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  netlink::LinkTarget target_;
  std::vector<HeldProcess> processes_;
  bool applied_ = false;
  int ended_ = 0;
  int left_ = 0;
};

}  // namespace faultline::injector
