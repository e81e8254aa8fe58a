#pragma once

#include <cstdint>
#include <string>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/brief_fault.h"
#include "injector/faults/port.h"
#include "injector/faults/still_watch.h"

namespace faultline::injector {

/// The port goes down and stays down. Evidence: the end that was not touched has lost its carrier,
/// and its counters stand still. A glimpse of it: that end has counted a loss of its carrier.
class PortDown final : public BriefFault {
 public:
  PortDown(const FaultParameters& parameters, const netlink::LinkTarget& target);
  ~PortDown() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override { return port_.mechanism(); }
  Status heal() override;
  bool glimpsed() const override { return losses_ > 0; }
  std::string glimpse() const override;

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  Port port_;
  bool applied_ = false;
  bool down_ = false;
  std::uint32_t losses_before_ = 0;  ///< of carrier, counted by the other end
  std::uint32_t losses_ = 0;         ///< since apply()
  bool carrier_ = true;
  StillWatch received_;
  StillWatch sent_;
};

}  // namespace faultline::injector
