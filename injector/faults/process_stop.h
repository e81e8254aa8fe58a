#pragma once

#include <vector>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/node_processes.h"
#include "injector/faults/still_watch.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// All processes of the NIC's namespace are stopped, and go on when the fault ends. Evidence: they
/// are in the state stopped, and their CPU time stands still.
class ProcessStop final : public Fault {
 public:
  ProcessStop(const FaultParameters& parameters, const netlink::LinkTarget& target);
  ~ProcessStop() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override { return "SIGSTOP to every process of the namespace"; }

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  Status signalAll(int number);

  netlink::LinkTarget target_;
  std::vector<HeldProcess> processes_;
  bool applied_ = false;
  int stopped_ = 0;
  StillWatch cpu_time_;  ///< nanoseconds of all of them
};

}  // namespace faultline::injector
