#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/rdma_adapter_silence.h"
#include "injector/faults/still_watch.h"
#include "injector/netlink/roce_tap.h"
#include "injector/rdma/steering_drop.h"
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

  /// Otherwise it is a loss that everybody sees.
  bool portLives() const;
  /// Whether packets vanish, unnoticed, in all ways that are asked for. Of those that go out our
  /// own probes are proof enough. Those that come in can only be seen to be missing when some came;
  /// where what goes out vanishes as well, nobody may have a reason to send any, and the proof is
  /// only of what goes out: see unseen().
  bool proven() const;
  /// What is asked for and was not seen, for the evidence; empty: nothing.
  std::string_view unseen() const;
};

/// Packets of an RDMA device in software vanish in the network interface; carrier and port stay as
/// they are. Evidence: RoCE probe frames of our own, which left the interface before, do not any
/// more; of what arrives, nothing reaches the device.
/// Those of an mlx5 adapter vanish in its steering tables (unproven on hardware). Evidence: the
/// adapter's own counters, under the job's load.
class RdmaSilentDrop final : public Fault {
 public:
  RdmaSilentDrop(const FaultParameters& parameters, const rdma::RdmaTarget& target);
  ~RdmaSilentDrop() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override { return mechanism_; }
  Duration evidenceBudget() const override;

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  enum class Means { kNone, kFilter, kQueue, kRule };

  bool onAdapter() const { return rule_ != nullptr; }
  Status prepareAdapter(rdma::TargetDevice device);
  Status applyRule();
  Status stepAdapter(TimePoint now);
  Evidence adapterVerdict() const;
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

  std::unique_ptr<rdma::SteeringDrop> rule_;  ///< of an adapter
  AdapterSilence silence_;
  std::optional<TimePoint> last_look_;
};

}  // namespace faultline::injector
