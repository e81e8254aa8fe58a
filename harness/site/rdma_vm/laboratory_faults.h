#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "harness/site/rdma_vm/laboratory.h"
#include "harness/site/rdma_vm/rail_line.h"
#include "harness/site/rdma_vm/rail_view.h"
#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/still_watch.h"

namespace faultline::rdma_vm {

/// A fault of one rail of a laboratory's host, from outside the guest. What proves it is seen
/// inside, or counted by the switch.
class RailFault : public injector::Fault {
 public:
  /// `kind`: its name. The rails are borrowed, and outlive it.
  RailFault(std::string kind, RailLine& rails, int host, int rail);
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  Duration evidenceBudget() const override;

 protected:
  const std::string& kind() const { return kind_; }
  virtual Status strike(bool broken) = 0;
  /// To be called by destructors of what implements strike().
  void undo();

  /// Not older than the strike.
  RailView view() const;
  const SwitchPort& port() const { return rails_.port(host_, rail_); }
  RailLine& rails() { return rails_; }
  int host() const { return host_; }
  int rail() const { return rail_; }

 private:
  /// Waits until the guest sees the rail whole again. kNotRestored: it does not.
  Status awaitWhole();

  std::string kind_;
  RailLine& rails_;
  int host_;
  int rail_;
  bool applied_ = false;
  bool asked_ = false;
  std::optional<wire::RailState> seen_;
  injector::StillWatch from_;
  injector::StillWatch to_;
  std::uint64_t from_before_ = 0;
  std::uint64_t dropped_before_ = 0;
};

/// The cable is pulled out, as qemu's set_link does. Evidence: the guest's own kernel
/// says that the RDMA port is down and that the NIC has no carrier; the switch gets nothing more.
class CablePull final : public RailFault {
 public:
  using RailFault::RailFault;
  ~CablePull() override { undo(); }
  std::string mechanism() const override { return "QMP set_link: the guest's NIC is unplugged"; }

 protected:
  Status strike(bool broken) override { return rails().setCable(host(), rail(), !broken); }
  bool conclusive() const override { return isPulled(view()); }
  injector::Evidence verdict() const override;
};

/// The switch drops everything from and to the rail. Evidence: frames of the host go on
/// arriving at the switch, it drops them and hands the host none, and the guest's RDMA port is
/// active. Needs the program to send something.
class SwitchDrop final : public RailFault {
 public:
  using RailFault::RailFault;
  ~SwitchDrop() override { undo(); }
  std::string mechanism() const override { return "the switch between the guests drops frames"; }

 protected:
  Status strike(bool broken) override;
  bool conclusive() const override { return isCutOff(view()); }
  injector::Evidence verdict() const override;
};

/// What the holder of a fault inside of a guest is told, as makeLaboratoryFault() has it.
wire::HeldFault heldFault(const std::string& kind, const injector::FaultParameters& parameters,
                          int rail, const std::string& started_with = {});

/// By the name of injector/fault_kind.h: those above, and what acts inside of a guest
/// (site::RemoteFault). kUnsupported for those that a laboratory does not have. `rail` does not
/// matter to faults of queue pairs, and `started_with` (wire::HeldFault::startedWith) to no others.
Result<std::unique_ptr<injector::Fault>> makeLaboratoryFault(
    const std::string& kind, const injector::FaultParameters& parameters, Laboratory& laboratory,
    int host, int rail, const std::string& started_with = {});

}  // namespace faultline::rdma_vm
