#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/brief_fault.h"
#include "injector/faults/flap_clock.h"

namespace faultline::injector {

/// Repeats a fault within its own time: again and again it strikes and is taken back. apply() is
/// the first outage, step() does the rest. Evidence: that fault was seen to hit in each outage.
class Flap final : public Fault {
 public:
  /// `kind` is its own name; `fault` is what it repeats.
  Flap(std::string kind, const FaultParameters& parameters, std::unique_ptr<BriefFault> fault);
  ~Flap() override;
  Status prepare() override;
  void lastsFor(std::optional<Duration> duration) override { clock_.lastsFor(duration); }
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override { return fault_->mechanism(); }

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  Status toggle();
  /// Outages that were seen to hit.
  std::int64_t seen() const;

  std::string kind_;
  std::unique_ptr<BriefFault> fault_;
  FlapClock clock_;
  bool applied_ = false;
  std::int64_t seen_before_ = 0;  ///< of the outages before this one
};

}  // namespace faultline::injector
