#pragma once

#include <optional>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/still_watch.h"
#include "injector/netlink/interface_configuration.h"
#include "injector/rdma/target_device.h"

namespace faultline::injector {

/// What rdma_port_down has seen. Pure.
struct RdmaPortView {
  rdma::PortState state = rdma::PortState::kActive;
  rdma::PhysicalState physical = rdma::PhysicalState::kLinkUp;
  StillWatch received;  ///< packets, by the device's own counter

  /// Whether the port is down, and nothing has come through it for a while.
  bool isDown() const;
};

/// The port of an RDMA device goes down together with its network interface. Evidence: not the flag
/// that was set but what the RDMA stack made of it, and the device's counters.
class RdmaPortDown final : public Fault {
 public:
  RdmaPortDown(const FaultParameters& parameters, const rdma::RdmaTarget& target);
  ~RdmaPortDown() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override {
    return "netlink: the network interface of the RDMA port is set down";
  }

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  rdma::RdmaTarget target_;
  std::optional<rdma::TargetDevice> device_;
  std::optional<rdma::TargetDevice> other_end_;
  netlink::InterfaceConfiguration configuration_;
  bool applied_ = false;

  RdmaPortView own_;
  RdmaPortView other_;
};

}  // namespace faultline::injector
