#include "harness/site/rdma_vm/guest_fault.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/units.h"
#include "harness/site/rdma_vm/vm_plan.h"

namespace faultline::rdma_vm {

namespace {

constexpr Duration kAnswerPoll = 1ms;
// For an answer that nobody waits for any more. Most guests need less.
constexpr Duration kLastBudget = 1s;

}  // namespace

wire::HeldFault heldFault(const std::string& kind, const injector::FaultParameters& parameters,
                          int rail, const std::string& started_with) {
  wire::HeldFault held{
      .kind = kind, .parameters = {}, .device = rdmaDeviceName(rail), .startedWith = started_with};
  for (const auto& [name, value] : parameters.all()) {
    held.parameters[name] = formatParameter(value);
  }
  return held;
}

GuestFault::GuestFault(HolderLine& guests, int host, wire::HeldFault held, Duration answer_budget)
    : guests_(guests), host_(host), held_(std::move(held)), answer_budget_(answer_budget) {}

GuestFault::~GuestFault() {
  Status status = revert();
  if (holder_) {
    const Status ended = guests_.endFault(*holder_);
    if (status.ok()) status = ended;
  }
  if (!status.ok()) spdlog::error("{} in host {}: {}", held_.kind, host_, status.message());
}

Duration GuestFault::evidenceBudget() const { return answer_budget_; }

Status GuestFault::prepare() {
  if (!holder_) {
    ASSIGN_OR_RETURN(holder_, guests_.startFault(host_, held_));
  }
  RETURN_IF_ERROR(ask(wire::FaultCall::kPrepare));
  ASSIGN_OR_RETURN(const wire::HolderAnswer answer, await());
  mechanism_ = answer.mechanism;
  return answer.outcome.status();
}

Status GuestFault::apply() {
  applied_ = true;  // before the call: if it fails half-way, revert() has something to do
  evidence_.reset();
  lapsed_.reset();
  return change(wire::FaultCall::kApply);
}

Status GuestFault::revert() {
  if (!applied_) return okStatus();
  const Status status = takeBack();
  if (status.ok() || status.code() == Code::kAborted) applied_ = false;
  return applied_ ? status : okStatus();
}

Status GuestFault::takeBack() {
  if (asked_) {  // evidence that nobody waited for, or a call that took too long
    const auto late = await(/*matters=*/true);
    if (late.ok()) take(*late, TimePoint::min());
    if (asked_) return late.status();  // what comes yet would be taken for the answer to this call
  }
  return change(wire::FaultCall::kRevert);
}

Status GuestFault::change(wire::FaultCall call) {
  const TimePoint before = now();
  RETURN_IF_ERROR(ask(call));
  ASSIGN_OR_RETURN(const wire::HolderAnswer answer, await(call == wire::FaultCall::kRevert));
  if (answer.lapsed) lapsed_ = answer.lapsed;
  mechanism_ = answer.mechanism;
  // To apply it changes something for the first time, so that the error of the clocks cannot put
  // that before the request.
  take(answer, call == wire::FaultCall::kApply ? before : TimePoint::min());
  return answer.outcome.status();
}

void GuestFault::take(const wire::HolderAnswer& answer, TimePoint earliest) {
  for (const wire::FaultChange& change : answer.changes) {
    const TimePoint begun = std::max(earliest, change.before);
    record({change.broken, begun, std::max(begun, change.after), change.peer});
  }
}

Status GuestFault::step(TimePoint /*now*/) {
  RETURN_IF_ERROR(guests_.listen(Duration::zero()));
  ASSIGN_OR_RETURN(std::optional<wire::HolderAnswer> answer, look());
  if (const Status broken = std::exchange(broken_, {}); !broken.ok()) return broken;
  if (!answer) return okStatus();
  take(*answer, TimePoint::min());
  RETURN_IF_ERROR(answer->outcome.status());
  wire::Evidence& told = answer->evidence;
  evidence_ = injector::Evidence{.fault = std::move(told.fault),
                                 .kind = std::move(told.kind),
                                 .observed = std::move(told.observed),
                                 .ok = told.ok,
                                 .numbers = std::move(told.numbers)};
  return okStatus();
}

Status GuestFault::demandEvidence() {
  return asked_ ? okStatus() : ask(wire::FaultCall::kEvidence);
}

injector::Evidence GuestFault::verdict() const {
  if (evidence_) return *evidence_;
  return {held_.kind, "none", "the guest has not told what it has seen", false};
}

Status GuestFault::ask(wire::FaultCall call) {
  if (!holder_) {
    return errorf(Code::kInternal, "{} in host {} was not prepared", held_.kind, host_);
  }
  RETURN_IF_ERROR(gone_);
  RETURN_IF_ERROR(guests_.tellFault(*holder_, wire::CallFault{call}));
  asked_ = call;
  return okStatus();
}

Result<wire::HolderAnswer> GuestFault::await(bool matters) {
  const TimePoint asked = now();
  const TimePoint deadline = asked + answer_budget_;
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<wire::HolderAnswer> answer, look());
    if (answer) return *answer;
    if (now() >= asked + (matters ? kLastBudget : Duration::zero())) {
      RETURN_IF_ERROR(unlessGivenUp(stop_, fmt::format("{} in host {}", held_.kind, host_)));
    }
    if (now() >= deadline) {
      return errorf(Code::kDeadlineExceeded, "{} in host {} has not answered for {}", held_.kind,
                    host_, formatDuration(answer_budget_));
    }
    RETURN_IF_ERROR(guests_.listen(kAnswerPoll));
  }
}

Result<std::optional<wire::HolderAnswer>> GuestFault::look() {
  while (std::optional<wire::FromHolder> said = guests_.faultSaid(*holder_)) {
    if (auto* const answer = std::get_if<wire::HolderAnswer>(&*said)) {
      if (!asked_) return errorf(Code::kInternal, "an answer that nobody has asked for");
      asked_.reset();
      return std::optional(std::move(*answer));
    }
    if (const auto* const broken = std::get_if<wire::HolderBroken>(&*said)) {
      broken_ = broken->outcome.status();
    } else if (const auto* const gone = std::get_if<wire::Gone>(&*said)) {
      gone_ = errorf(Code::kUnavailable, "what holds {} in host {} has ended: {}", held_.kind,
                     host_, gone->message);
    }
  }
  RETURN_IF_ERROR(gone_);
  return std::optional<wire::HolderAnswer>();
}

}  // namespace faultline::rdma_vm
