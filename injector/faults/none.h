#pragma once

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// Does nothing and leaves no evidence: with it the bench tests itself, because a run with it must
/// be INVALID.
class None final : public Fault {
 public:
  None(const FaultParameters& parameters, const netlink::LinkTarget& target);
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override { return "nothing is done"; }

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  bool applied_ = false;
};

}  // namespace faultline::injector
