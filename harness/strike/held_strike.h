#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "harness/strike/plan.h"
#include "injector/fault.h"
#include "injector/netlink/socket.h"
#include "injector/safety/host_machine.h"
#include "injector/safety/journal.h"

namespace faultline::strike {

/// A fault of an interface of this host that this process holds: allowed by the policy, journaled
/// before anything changes, and undone by revert(), the destructor, or, where it was given one, at
/// the end of its time by step(). What happens when this process dies instead is up to whoever
/// reads the journal.
///
/// prepare() and apply() ask policy, management path and journal, apply() with the journal's lock;
/// it also runs the commands of the policy. kPermissionDenied and kUnavailable as safety::allows().
class HeldStrike final : public injector::Fault {
 public:
  /// In the network namespace of this process. kInvalidArgument, kNotFound where there is no such
  /// fault or interface here. The entry in the journal is called `id`, and `id-2` when it is
  /// applied again.
  static Result<std::unique_ptr<HeldStrike>> make(const Order& order, Asker asker, Files files,
                                                  std::string id);
  ~HeldStrike() override;

  const Plan& plan() const { return plan_; }
  netlink::Socket& socket() { return socket_; }

  /// step() undoes it the order's length after it was applied, and says so: kDeadlineExceeded.
  void endByItself() { ends_by_itself_ = true; }
  /// Told, for people, when it was struck and when it was taken back.
  void onChange(std::function<void(const std::string&)> note) { note_ = std::move(note); }

  /// Whether all but the journal allows it. Makes and changes nothing.
  Status mayBegin();
  /// Whether it would be allowed now, also by the journal and by what is there; needs no rights.
  Status wouldBeAllowed();
  /// Of each command of the policy, once mayBegin() or prepare() was ok.
  Duration commandLimit() const { return command_limit_; }

  Status prepare() override;
  void stopWhen(std::function<bool()> stop) override { stop_ = std::move(stop); }
  Status apply() override;
  Status step(TimePoint now) override;
  /// What could not be taken back stays in the journal: kNotRestored.
  Status revert() override;
  std::string mechanism() const override;
  std::optional<TimePoint> lapsedAt() const override { return lapsed_; }
  Duration evidenceBudget() const override { return plan_.fault.watch->evidenceBudget(); }

 protected:
  bool conclusive() const override { return !active_ || plan_.fault.watch->conclusive(); }
  injector::Evidence verdict() const override;
  Status demandEvidence() override { return plan_.fault.watch->demandEvidence(); }

 private:
  HeldStrike(Plan plan, netlink::Socket socket, Asker asker, Files files, std::string id)
      : plan_(std::move(plan)),
        socket_(std::move(socket)),
        asker_(std::move(asker)),
        files_(std::move(files)),
        id_(std::move(id)) {}

  Result<safety::Policy> policyNow();
  Status allowedNow(const safety::Policy& policy, const safety::Kept& kept);
  Status checkOperations();
  Status renew();
  void note(const std::string& what) const;

  Plan plan_;
  netlink::Socket socket_;
  const Asker asker_;
  const Files files_;
  const std::string id_;
  std::function<bool()> stop_;
  std::function<void(const std::string&)> note_;
  bool ends_by_itself_ = false;
  std::optional<safety::Journal> journal_;
  std::optional<safety::HostMachine> machine_;
  safety::Entry entry_;
  Duration command_limit_{};
  int applied_ = 0;      ///< how often
  bool active_ = false;  ///< it has begun, and nobody has tried to undo it
  Status undone_;        ///< of the last attempt
  TimePoint struck_{};
  std::optional<TimePoint> lapsed_;
};

}  // namespace faultline::strike
