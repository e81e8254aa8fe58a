#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "injector/fault.h"
#include "injector/fault_table.h"
#include "injector/faults/still_watch.h"
#include "injector/netlink/roce_tap.h"
#include "injector/rdma/target_device.h"

namespace faultline::injector {

/// What rdma_silent_drop has seen since it was applied. Pure.
struct SilentDropView {
  bool out = true;  ///< what is asked for
  bool in = true;

  bool carrier = false;
  rdma::PortState state = rdma::PortState::kDown;
  std::uint64_t probes = 0;       ///< sent into the interface
  std::uint64_t device_sent = 0;  ///< packets that the RDMA device says it has sent
  StillWatch left;                ///< RoCE frames that have left the interface all the same
  std::uint64_t arrived = 0;      ///< RoCE frames that the interface has received
  StillWatch accepted;            ///< packets that the RDMA device says it has received

  /// Whether packets vanish, unnoticed, in all ways that are asked for. Of those that go out our
  /// own probes are proof enough; those that come in can only be seen to be missing when some came,
  /// unless what goes out vanishes as well, which nobody answers then.
  bool proven() const;
};

/// Packets of an RDMA device in software vanish in the network interface; carrier and port stay as
/// they are. Evidence: RoCE probe frames of our own, which left the interface before, do not any
/// more; of what arrives, nothing reaches the device.
class RdmaSilentDrop final : public Fault {
 public:
  RdmaSilentDrop(const FaultParameters& parameters, const rdma::RdmaTarget& target);
  ~RdmaSilentDrop() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override { return mechanism_; }

 protected:
  bool conclusive() const override { return applied_ && view_.proven(); }
  Evidence verdict() const override;

 private:
  enum class Means { kNone, kFilter, kQueue };

  Status install();
  Status remove();
  /// kUnavailable when probes do not leave the interface.
  Status requireProbesLeave();

  rdma::RdmaTarget target_;
  bool out_;
  bool in_;
  bool only_roce_;
  std::optional<rdma::TargetDevice> device_;
  std::optional<netlink::RoceTap> tap_;
  Means means_ = Means::kNone;
  std::string mechanism_ = "not applied yet: a filter (cls_bpf) or queue (blackhole, netem)";
  bool applied_ = false;
  bool observing_ = false;
  std::uint64_t device_sent_before_ = 0;
  SilentDropView view_;
};

}  // namespace faultline::injector
