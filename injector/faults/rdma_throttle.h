#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/rate_meter.h"
#include "injector/faults/rdma_rate_change.h"
#include "injector/faults/throttle_plan.h"
#include "injector/netlink/frame_socket.h"
#include "injector/rdma/dcb_messages.h"
#include "injector/rdma/target_device.h"

namespace faultline::injector {

/// An RDMA device in software sends slowly: a token bucket of ours (or htb) is at the root of its
/// network interface. Evidence: bytes per second that leave that queue while something waits in it.
/// An adapter sends slowly: DCB's rate limit for each traffic class (unproven on hardware).
/// Evidence: what the port's counters tell, before and in the fault.
class RdmaThrottle final : public Fault {
 public:
  RdmaThrottle(const FaultParameters& parameters, const rdma::RdmaTarget& target);
  ~RdmaThrottle() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override { return mechanism_; }
  Duration evidenceBudget() const override;

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;
  Status demandEvidence() override;

 private:
  enum class Means { kNone, kTokenBucket, kShaper, kMaxrates };

  struct QueueState {
    std::uint64_t sent_bytes = 0;
    Bytes backlog = 0;
  };

  bool onAdapter() const { return way_ == rdma::RateMechanism::kDcbMaxrate; }
  int ifindex() const { return device_->portAtFirst().netdev_ifindex; }
  const std::string& netdev() const { return device_->portAtFirst().netdev; }
  Status prepareAdapter();
  Status installQueue();
  Result<QueueState> readQueue();
  Status remove();
  Status feed(Bytes backlog);
  std::string describeQueue() const;

  rdma::RdmaTarget target_;
  ParameterValue rate_;
  std::optional<std::size_t> traffic_class_;
  std::optional<rdma::TargetDevice> device_;
  rdma::RateMechanism way_ = rdma::RateMechanism::kTrafficControl;
  Means means_ = Means::kNone;
  std::string mechanism_ = "not applied yet";
  bool applied_ = false;
  bool probing_ = false;

  ThrottlePlan plan_;
  BacklogMeter meter_ = plan_.meter();
  std::vector<netlink::FrameSocket> probes_;

  rdma::Maxrates rates_before_{};
  rdma::Maxrates rates_after_{};
  std::optional<RateChange> change_;
};

}  // namespace faultline::injector
