#pragma once

#include <optional>
#include <string>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/brief_fault.h"
#include "injector/faults/crossing_probe.h"
#include "injector/faults/forwarding.h"
#include "injector/faults/still_watch.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// The switch stops forwarding from and to the link, whose carrier stays up (bridge port state
/// "disabled"). Evidence, under any load: the NIC's transmit counter rises by our probe frames and
/// none of them leaves the switch by another port; frames broadcast by the switch itself leave by
/// another port but not by this one, whose transmit counter stands still. A glimpse of it: the
/// probes were at the switch from either side, and soon after none had crossed.
class Blackhole final : public BriefFault {
 public:
  Blackhole(const FaultParameters& parameters, const netlink::LinkTarget& target);
  ~Blackhole() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override { return Forwarding::kMechanism; }
  Status readyForBriefStrikes() override;
  Status heal() override;
  bool glimpsed() const override;
  std::string glimpse() const override;

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  Status openProbe();
  Status beginProbing();

  netlink::LinkTarget target_;
  Forwarding forwarding_;
  bool applied_ = false;
  bool swallowing_ = false;

  std::optional<CrossingProbe> probe_;  // from the first strike on
  bool probing_ = false;                // since the last one
  std::uint64_t transmitted_before_ = 0;
  std::uint64_t transmitted_ = 0;
  bool carrier_ = false;
  StillWatch forwarded_;  ///< what leaves the switch towards the NIC
  StillWatch leaked_;     ///< probe frames that passed where they must not
  TimePoint latest_{};
  std::optional<TimePoint> reached_;  ///< when the probes had left the NIC and the sibling
};

}  // namespace faultline::injector
