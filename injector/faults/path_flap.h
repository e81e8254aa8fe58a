#pragma once

#include <optional>

#include "injector/fault.h"
#include "injector/fault_table.h"
#include "injector/faults/crossing_probe.h"
#include "injector/faults/flap_clock.h"
#include "injector/faults/forwarding.h"

namespace faultline::injector {

/// The switch stops forwarding from and to the link and goes on, again and again, while its carrier
/// stays up; apply() is the first outage, step() does the rest. Evidence, in each outage: probe
/// frames of the NIC arrive at the switch and none leaves it by another port; of those that the
/// switch broadcasts itself some leave by another port, but none by this one.
class PathFlap final : public Fault {
 public:
  PathFlap(const FaultParameters& parameters, const netlink::LinkTarget& target);
  ~PathFlap() override;
  Status prepare() override;
  void lastsFor(std::optional<Duration> duration) override { clock_.lastsFor(duration); }
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override { return Forwarding::kMechanism; }

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  Status toggle();
  Status look(TimePoint now);
  std::int64_t proven() const { return proven_before_ + (arrived_ ? 1 : 0); }

  netlink::LinkTarget target_;
  Forwarding forwarding_;
  FlapClock clock_;
  bool applied_ = false;

  std::optional<CrossingProbe> probe_;  // from prepare on: an outage is too short to open it in
  bool probing_ = false;                // since this outage began
  std::int64_t proven_before_ = 0;      // outages before this one that were seen
  int leaked_before_ = 0;               // frames that passed in those
  int leaked_ = 0;
  std::optional<TimePoint> arrived_;  ///< when the probes of this outage were where it begins
  TimePoint latest_{};
};

}  // namespace faultline::injector
