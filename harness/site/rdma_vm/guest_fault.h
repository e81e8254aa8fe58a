#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/give_up.h"
#include "base/status.h"
#include "harness/site/rdma_vm/holder_line.h"
#include "injector/fault.h"
#include "injector/fault_kind.h"

namespace faultline::rdma_vm {

/// A fault as a guest is told of it: parameters in the words of a scenario.
wire::HeldFault heldFault(const std::string& kind, const injector::FaultParameters& parameters,
                          int rail, const std::string& started_with = {});

/// A fault of injector/faults that acts inside of a guest, where a holder (agent/fault_holder.h)
/// keeps it: each call is a message there and an answer. Faults of queue pairs strike every program
/// of the guest that has the shim, or those of one rank; those of RDMA devices the one of a rail.
/// Its moments are those of the change in the guest, in this machine's clock (site::Agents): as far
/// from the truth as the offset of the two clocks (site::Agents::clockError).
class GuestFault final : public injector::Fault {
 public:
  /// How long a holder has for an answer. A guest in software on a busy machine takes seconds for
  /// what takes milliseconds elsewhere, and to put a port back waits for it.
  static constexpr Duration kAnswerBudget = 60s;

  /// `guests` is borrowed, and outlives it.
  GuestFault(HolderLine& guests, int host, wire::HeldFault held,
             Duration answer_budget = kAnswerBudget);
  ~GuestFault() override;
  /// Starts the holder, the first time. What it answers is returned as the fault's own; besides
  /// kUnavailable when the holder has ended, kDeadlineExceeded when it does not answer.
  Status prepare() override;
  void stopWhen(std::function<bool()> stop) override { stop_ = std::move(stop); }
  Status apply() override;
  /// An error of what the fault does over time, in the guest, is returned here.
  Status step(TimePoint now) override;
  /// Once it was told to stop, a guest that says nothing is not waited for: it is switched off, and
  /// the fault with it.
  Status revert() override;
  std::string mechanism() const override { return mechanism_; }
  std::optional<TimePoint> lapsedAt() const override { return lapsed_; }
  Duration evidenceBudget() const override;

 protected:
  bool conclusive() const override { return evidence_.has_value(); }
  injector::Evidence verdict() const override;
  Status demandEvidence() override;

 private:
  Status ask(wire::FaultCall call);
  /// Waits for the answer to what was asked. kAborted when it was told to stop: where the answer
  /// `matters`, a little later.
  Result<wire::HolderAnswer> await(bool matters = false);
  Status takeBack();
  /// Takes in what the holder has said: the answer, once it is there.
  Result<std::optional<wire::HolderAnswer>> look();
  /// Records what has changed, and not earlier than that.
  void take(const wire::HolderAnswer& answer, TimePoint earliest);
  /// Asks, waits, and records what has changed.
  Status change(wire::FaultCall call);

  HolderLine& guests_;
  int host_;
  wire::HeldFault held_;
  Duration answer_budget_;
  GiveUp stop_;
  std::optional<int> holder_;
  std::optional<wire::FaultCall> asked_;  ///< not answered yet
  std::string mechanism_;
  std::optional<injector::Evidence> evidence_;
  std::optional<TimePoint> lapsed_;
  bool applied_ = false;
  Status broken_;  ///< what it does over time has failed, and step() has not said so yet
  Status gone_;    ///< the holder has ended
};

}  // namespace faultline::rdma_vm
