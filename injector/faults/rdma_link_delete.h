#pragma once

#include <optional>
#include <string>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/rdma/link_deletion.h"
#include "injector/rdma/target_device.h"

namespace faultline::injector {

/// An RDMA device in software is deleted, and made again by revert(). Evidence: the kernel does not
/// list it any more, and nobody can open its character device.
///
/// The kernel may end the deletion only when no program has the device open (rxe): a process of its
/// own waits for that, which this program need not outlive.
class RdmaLinkDelete final : public Fault {
 public:
  RdmaLinkDelete(const FaultParameters& parameters, const rdma::RdmaTarget& target);
  ~RdmaLinkDelete() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override {
    return "RDMA netlink: the device is deleted (RDMA_NLDEV_CMD_DELLINK)";
  }

 protected:
  bool conclusive() const override { return !listed_ && open_error_ != 0; }
  Evidence verdict() const override;

 private:
  Status requireNoHolders();
  Status removeDevice();
  Result<bool> isListed();
  std::string holdersInWords() const;

  rdma::RdmaTarget target_;
  bool leave_users_;
  std::optional<rdma::TargetDevice> device_;
  rdma::Holders holders_;
  std::optional<rdma::LinkDeletion> deletion_;
  bool applied_ = false;

  bool listed_ = true;
  int open_error_ = 0;  ///< errno of opening the character device; 0: it was possible
};

}  // namespace faultline::injector
