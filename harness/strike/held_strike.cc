#include "harness/strike/held_strike.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "base/printable.h"
#include "base/units.h"
#include "harness/strike/policy_command.h"
#include "injector/netlink/namespace.h"
#include "injector/safety/strike.h"

namespace faultline::strike {
namespace {

constexpr Duration kLockPatience = 5s;

/// Gives the journal back as soon as others see the entry.
class OnceLocked final : public safety::Records {
 public:
  OnceLocked(safety::Journal& journal, UniqueFd lock) : journal_(journal), lock_(std::move(lock)) {}
  Status create(const safety::Entry& entry) override {
    const Status created = journal_.create(entry);
    lock_.reset();
    return created;
  }
  Status write(const safety::Entry& entry) override { return journal_.write(entry); }
  Status remove(const std::string& id) override { return journal_.remove(id); }

 private:
  safety::Journal& journal_;
  UniqueFd lock_;
};

}  // namespace

Result<std::unique_ptr<HeldStrike>> HeldStrike::make(const Order& order, Asker asker, Files files,
                                                     std::string id) {
  ASSIGN_OR_RETURN(const UniqueFd here, netlink::currentNamespace());
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::open(here.get()));
  ASSIGN_OR_RETURN(Plan plan, makePlan(order, socket));
  return std::unique_ptr<HeldStrike>(new HeldStrike(
      std::move(plan), std::move(socket), std::move(asker), std::move(files), std::move(id)));
}

HeldStrike::~HeldStrike() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("{}: {}", plan_.order.kind->name, status.message());
}

Status HeldStrike::allowedNow(const safety::Policy& policy, const safety::Kept& kept) {
  return allowed(socket_, plan_.target, plan_.order.kind->name, plan_.order.length, policy,
                 plan_.order.keep, kept, asker_);
}

Result<safety::Policy> HeldStrike::policyNow() {
  return policyFor(files_, plan_.target.interface, plan_.order.kind->name);
}

Status HeldStrike::checkOperations() {
  for (const safety::Operation& operation : plan_.fault.operations) {
    RETURN_IF_ERROR(safety::check(operation, socket_, plan_.target.ifindex));
  }
  return okStatus();
}

Status HeldStrike::mayBegin() {
  RETURN_IF_ERROR(requireNetAdmin());
  ASSIGN_OR_RETURN(const safety::Policy policy, policyNow());
  command_limit_ = policy.commandLimit;
  return allowedNow(policy, {});
}

Status HeldStrike::wouldBeAllowed() {
  ASSIGN_OR_RETURN(const safety::Policy policy, policyNow());
  ASSIGN_OR_RETURN(const safety::Kept kept, safety::Journal::look(files_.journal).read());
  RETURN_IF_ERROR(allowedNow(policy, kept));
  return checkOperations();
}

Status HeldStrike::prepare() {
  RETURN_IF_ERROR(mayBegin());  // before anything is made
  ASSIGN_OR_RETURN(safety::Journal journal, safety::Journal::open(files_.journal));
  RETURN_IF_ERROR(wouldBeAllowed());
  journal_.emplace(std::move(journal));
  return plan_.fault.watch->prepare(socket_, plan_.target.ifindex);
}

Status HeldStrike::renew() {
  ASSIGN_OR_RETURN(plan_, makePlan(plan_.order, socket_));
  return prepare();
}

Status HeldStrike::apply() {
  if (!journal_) return errorf(Code::kInternal, "apply() without prepare()");
  RETURN_IF_ERROR(revert());
  // What was watched the last time says nothing about this one.
  if (applied_ > 0) RETURN_IF_ERROR(renew());
  ++applied_;
  lapsed_.reset();
  // As it is by now: who has prepared it may have waited long.
  ASSIGN_OR_RETURN(const safety::Policy policy, policyNow());
  ASSIGN_OR_RETURN(UniqueFd lock, journal_->lock(kLockPatience));
  ASSIGN_OR_RETURN(const safety::Kept kept, journal_->read());
  RETURN_IF_ERROR(allowedNow(policy, kept));
  entry_ =
      entryOf(plan_, policy, asker_, applied_ == 1 ? id_ : fmt::format("{}-{}", id_, applied_));
  safety::HostWatch& watch = *plan_.fault.watch;
  machine_.emplace(socket_, policyCommand(entry_));
  machine_->alsoAwait([&](int ifindex) { return watch.whatIsMissing(socket_, ifindex); });
  machine_->alsoRequire([this, policy] {
    return refuseManagement(socket_, plan_.target, policy, plan_.order.keep, asker_.process);
  });
  machine_->tell([this](bool broken, TimePoint before, TimePoint after) {
    record({.broken = broken, .before = before, .after = after});
  });
  OnceLocked records(*journal_, std::move(lock));
  const Status begun = safety::begin(*machine_, records, entry_, stop_);
  if (!begun.ok()) return begun;  // nothing is left, or the status says so
  active_ = true;
  struck_ = now();
  note(fmt::format("struck, for {} at most", formatDuration(plan_.order.length)));
  return okStatus();
}

Status HeldStrike::step(TimePoint now) {
  if (!active_) return okStatus();
  if (!ends_by_itself_ || now < struck_ + plan_.order.length) {
    return plan_.fault.watch->step(now);
  }
  lapsed_ = now;
  RETURN_IF_ERROR(revert());
  return errorf(Code::kDeadlineExceeded, "it has lasted for its longest, {}, and was taken back",
                formatDuration(plan_.order.length));
}

Status HeldStrike::revert() {
  if (!active_) return undone_;
  active_ = false;
  undone_ = safety::undo(*machine_, *journal_, entry_);
  const double lasted = toMilliseconds(now() - struck_);
  note(undone_.ok() ? fmt::format("taken back, after {:.0f} ms", lasted)
                    : fmt::format("NOT taken back: {}", undone_.message()));
  return undone_;
}

std::string HeldStrike::mechanism() const {
  std::string words;
  for (const safety::Operation& operation : plan_.fault.operations) {
    words += (words.empty() ? "" : "; ") + safety::commandOf(operation, plan_.target.interface);
  }
  return words;
}

injector::Evidence HeldStrike::verdict() const {
  injector::Evidence evidence = plan_.fault.watch->verdict();
  evidence.fault = plan_.order.kind->name;
  return evidence;
}

void HeldStrike::note(const std::string& what) const {
  if (note_) {
    note_(printable(fmt::format("{} of {} by {} ({}): {}", plan_.order.kind->name,
                                safety::nameOf(plan_.target), asker_.user, asker_.job, what)));
  }
}

}  // namespace faultline::strike
