#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/give_up.h"
#include "base/status.h"
#include "harness/site/holder_line.h"
#include "injector/fault.h"
#include "injector/fault_kind.h"

namespace faultline::site {

/// A fault as who holds it is told of it: kind, and parameters in the words of a scenario.
wire::HeldFault heldFault(const std::string& kind, const injector::FaultParameters& parameters);

/// How who holds a fault on a node is waited for, and what becomes of it there without us.
struct RemoteManner {
  /// How long it has for an answer.
  Duration answers{};
  /// The same of what takes the fault back, once nobody waits any more.
  Duration lastAnswer{};
  /// Of nodes that undo a fault whatever dies: makes sure that nothing of it is left, where its
  /// holder can be told nothing any more, for the reason that it gets. ok: so it is, or the node's
  /// loss is told elsewhere. An end of such a holder is no error: the strike has no evidence then.
  /// Null: the fault ends with its node, and an end of its holder is an error.
  std::function<Status(const Status& why)> undone{};
  /// Of such nodes: what it lasts besides what was asked for, at most: for evidence, and until it
  /// is taken back.
  Duration spare{};
  /// But no longer than this, if that was not asked for.
  Duration longest = Duration::max();
};

/// A fault that acts on a node with an agent, where a holder keeps it: each call is a message there
/// and an answer. Its moments are those of the change on the node, in this machine's clock
/// (site::Agents): as far from the truth as the offset of the two clocks (Agents::clockError).
class RemoteFault final : public injector::Fault {
 public:
  /// `line` is borrowed, and outlives it. `where`: the node in messages, "host n1".
  RemoteFault(HolderLine& line, int node, std::string where, wire::HeldFault held,
              RemoteManner manner);
  ~RemoteFault() override;
  /// Starts the holder, the first time. What it answers is returned as the fault's own; besides
  /// kUnavailable when the holder has ended, kDeadlineExceeded when it does not answer.
  Status prepare() override;
  void stopWhen(std::function<bool()> stop) override { stop_ = std::move(stop); }
  void noLongerThan(Duration longest) override;
  Status apply() override;
  /// An error of what the fault does over time, on the node, is returned here.
  Status step(TimePoint now) override;
  /// Once it was told to stop, a node that says nothing and ends with the run is not waited for:
  /// the fault ends with it.
  Status revert() override;
  std::string mechanism() const override { return mechanism_; }
  std::optional<TimePoint> lapsedAt() const override { return lapsed_; }
  Duration evidenceBudget() const override;

 protected:
  bool conclusive() const override { return evidence_.has_value(); }
  injector::Evidence verdict() const override;
  Status demandEvidence() override;

 private:
  bool isUndoneThere() const { return manner_.undone != nullptr; }
  Status ask(wire::FaultCall call);
  /// Waits for the answer to what was asked. kAborted when it was told to stop: where the answer
  /// `matters`, a little later.
  Result<wire::HolderAnswer> await(bool matters = false);
  Status takeBack();
  /// What came of a call; with who says so, where that is not the bench's own.
  Status said(const wire::HolderAnswer& answer) const;
  /// Another holder, in place of one that has ended.
  Status holdAnew();
  /// What takeBack() could not say. Ends the holder: it holds the fault no longer than that.
  Status makeSureOfUndo(const Status& why);
  /// Takes in what the holder has said: the answer, once it is there.
  Result<std::optional<wire::HolderAnswer>> look();
  /// Records what has changed, and not earlier than that.
  void take(const wire::HolderAnswer& answer, TimePoint earliest);
  /// Asks, waits, and records what has changed.
  Status change(wire::FaultCall call);

  HolderLine& line_;
  int node_;
  std::string where_;
  wire::HeldFault held_;
  RemoteManner manner_;
  GiveUp stop_;
  std::optional<int> holder_;
  std::optional<wire::FaultCall> asked_;  ///< not answered yet
  std::string mechanism_;
  std::optional<injector::Evidence> evidence_;
  std::optional<TimePoint> lapsed_;
  bool applied_ = false;
  bool heard_ = false;   ///< there was an answer to the call that takes it back
  bool unsure_ = false;  ///< nobody could say that it is undone, which revert() has returned
  Status broken_;        ///< what it does over time has failed, and step() has not said so yet
  Status gone_;          ///< the holder has ended
};

}  // namespace faultline::site
