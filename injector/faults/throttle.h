#pragma once

#include <optional>
#include <string>
#include <vector>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/throttle_plan.h"
#include "injector/netlink/frame_socket.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// The link becomes slow in one or both directions. Works on links that are shaped by our own
/// shaper. Evidence: the rate at which the queue is emptied while something waits in it and the
/// kernel says that the shaper has the new rate; when the job does not give that load, a stream of
/// probe frames. Where all that could be shown is that it is slower than before (a machine that is
/// starved sends slowly, too), it says just that.
class Throttle final : public Fault {
 public:
  Throttle(const FaultParameters& parameters, const netlink::LinkTarget& target);
  ~Throttle() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override {
    return "netlink: the shaping class of the link is given another rate";
  }
  Duration evidenceBudget() const override;

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;
  Status demandEvidence() override;

 private:
  /// One direction.
  struct Side {
    std::string name;  ///< "tx" or "rx"
    netlink::LinkEnd from;
    netlink::LinkEnd to;
    ThrottlePlan plan;
    BacklogMeter meter = plan.meter();
    std::optional<BitsPerSecond> kernel_rate;  ///< what the shaper had when it was last read
    Bytes backlog = 0;                         ///< and what waited in it
    netlink::MacAddress destination{};
    std::vector<netlink::FrameSocket> probes;

    /// It has the rate that was asked for.
    bool proven() const { return proofOf(plan, meter.measured()) == ThrottleProof::kAsAsked; }
  };

  Status setRates(BitsPerSecond ThrottlePlan::*rate);
  Status look(Side& side, TimePoint now);
  Status probe(Side& side);
  Status feed(Side& side);

  netlink::LinkTarget target_;
  ParameterValue rate_;
  std::vector<Side> sides_;
  bool probing_ = false;
  bool applied_ = false;
};

}  // namespace faultline::injector
