#pragma once

#include <optional>
#include <string>
#include <vector>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/crossing_probe.h"
#include "injector/netlink/drop_filter.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// A link loses frames, all or a share of them, in one direction or both; its carrier stays up. The
/// frames are dropped inside the switch, where the sender's kernel hears nothing of it. Evidence:
/// of probe frames in both directions, as many cross the link as should.
class Loss : public Fault {
 public:
  ~Loss() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override {
    return "netlink: a filter on the switch's port drops frames (clsact, cls_bpf)";
  }

 protected:
  /// Shares that are lost of what the node sends and of what it should receive, 0 to 1.
  struct Shares {
    double out = 0;
    double in = 0;
  };
  Loss(std::string kind, const Shares& lost, const netlink::LinkTarget& target);

  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  Status install(double factor);

  std::string kind_;
  Shares lost_;
  netlink::LinkTarget target_;
  bool applied_ = false;

  std::optional<CrossingProbe> probe_;  // from the first strike on
  bool probing_ = false;                // since the last one
  std::uint64_t received_before_ = 0;   // by the switch, from the NIC
  std::uint64_t received_ = 0;
  bool carrier_ = false;
  TimePoint latest_{};
  std::optional<TimePoint> reached_;  ///< when the probes had reached the place of the filter
};

/// All of one direction.
class OneWayLoss final : public Loss {
 public:
  OneWayLoss(const FaultParameters& parameters, const netlink::LinkTarget& target);
};

/// A share.
class RandomLoss final : public Loss {
 public:
  RandomLoss(const FaultParameters& parameters, const netlink::LinkTarget& target);
};

}  // namespace faultline::injector
