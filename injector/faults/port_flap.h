#pragma once

#include <cstdint>

#include "injector/fault.h"
#include "injector/fault_table.h"
#include "injector/faults/flap_clock.h"
#include "injector/faults/port.h"

namespace faultline::injector {

/// The port goes down and comes back, again and again; apply() is the first loss, step() does the
/// rest. Evidence: the end that was not touched has counted as many losses of carrier.
class PortFlap final : public Fault {
 public:
  PortFlap(const FaultParameters& parameters, const netlink::LinkTarget& target);
  ~PortFlap() override;
  Status prepare() override;
  void lastsFor(std::optional<Duration> duration) override { clock_.lastsFor(duration); }
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override { return port_.mechanism(); }

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  Status toggle();
  Result<std::uint32_t> countLosses();

  Port port_;
  FlapClock clock_;
  bool applied_ = false;
  std::uint32_t losses_before_ = 0;
  std::uint32_t losses_ = 0;
};

}  // namespace faultline::injector
