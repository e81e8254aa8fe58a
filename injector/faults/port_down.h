#pragma once

#include "injector/fault.h"
#include "injector/fault_table.h"
#include "injector/faults/port.h"
#include "injector/faults/still_watch.h"

namespace faultline::injector {

/// The port goes down and stays down. Evidence: the end that was not touched has lost its carrier,
/// and its counters stand still.
class PortDown final : public Fault {
 public:
  PortDown(const FaultParameters& parameters, const netlink::LinkTarget& target);
  ~PortDown() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override { return port_.mechanism(); }

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  Port port_;
  bool applied_ = false;
  bool carrier_ = true;
  StillWatch received_;
  StillWatch sent_;
};

}  // namespace faultline::injector
