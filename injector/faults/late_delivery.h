#pragma once

#include <optional>
#include <string>
#include <vector>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/crossing_probe.h"
#include "injector/netlink/drop_filter.h"
#include "injector/netlink/frame_hold.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// The link holds back what is sent over it, its carrier up, and delivers it late: after `hold` the
/// link is whole again, and what it held comes out. Evidence: while it holds, probe frames reach
/// the switch and do not cross; afterwards all that was held is sent, and the same probe frames
/// cross, late.
class LateDelivery final : public Fault {
 public:
  LateDelivery(const FaultParameters& parameters, const netlink::LinkTarget& target);
  ~LateDelivery() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override {
    return "packet sockets keep a copy of what tc (clsact, cls_bpf) drops at the switch's port, "
           "and "
           "send it at the end";
  }
  Duration evidenceBudget() const override;

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  /// One direction.
  struct Side {
    bool out;  ///< what the node sends
    netlink::FrameHold hold;
    std::int64_t lost = 0;   ///< found no room
    std::int64_t twice = 0;  ///< at most: taken while the filter was being set or removed
    bool done = false;       ///< all is sent
  };

  Status openSide(bool out);
  Status beginRelease();
  Status release();
  Status look();
  bool crossed() const;
  int crossed(const Side& side) const { return side.out ? probe_->out() : probe_->in(); }
  bool proven(const Side& side) const;

  netlink::LinkTarget target_;
  std::string direction_;
  Duration hold_;
  std::vector<Side> sides_;
  std::optional<CrossingProbe> probe_;
  bool probing_ = false;
  bool held_ = false;      ///< the link is holding now
  bool released_ = false;  ///< since apply(): it has begun to let go
  bool silent_ = false;    ///< probes reached the switch and did not cross while it held
  bool leaked_ = false;    ///< some did
  TimePoint until_{};
};

}  // namespace faultline::injector
