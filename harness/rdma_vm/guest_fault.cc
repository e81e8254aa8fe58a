#include "harness/rdma_vm/guest_fault.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/units.h"

namespace faultline::rdma_vm {

using nlohmann::json;

namespace {

constexpr Duration kAnswerPoll = 1ms;

}  // namespace

HeldFault heldFault(const std::string& kind, const injector::FaultParameters& parameters, int rail,
                    const std::string& started_with) {
  HeldFault held{.kind = kind, .parameters = {}, .rail = rail, .startedWith = started_with};
  for (const auto& [name, value] : parameters.all()) {
    held.parameters[name] = formatParameter(value);
  }
  return held;
}

GuestFault::GuestFault(HolderLine& guests, int host, HeldFault held, Duration answer_budget)
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
    ASSIGN_OR_RETURN(holder_, guests_.startFault(host_, toJson(held_)));
  }
  RETURN_IF_ERROR(ask(HolderCall::kPrepare));
  ASSIGN_OR_RETURN(const HolderAnswer answer, await());
  mechanism_ = answer.mechanism;
  return answer.status;
}

Status GuestFault::apply() {
  applied_ = true;  // before the call: if it fails half-way, revert() has something to do
  evidence_.reset();
  lapsed_.reset();
  return change(HolderCall::kApply);
}

Status GuestFault::revert() {
  if (!applied_) return okStatus();
  if (asked_) {  // evidence that nobody waited for, or a call that took too long
    const Status late = await().status();
    if (asked_) return late;  // what comes yet would be taken for the answer to this call
  }
  RETURN_IF_ERROR(change(HolderCall::kRevert));
  applied_ = false;
  return okStatus();
}

Status GuestFault::change(HolderCall call) {
  const TimePoint before = now();
  RETURN_IF_ERROR(ask(call));
  ASSIGN_OR_RETURN(const HolderAnswer answer, await());
  const TimePoint answered = now();
  const TimePoint after = std::max(before, answered - answer.since);
  if (answer.lapsed) lapsed_ = answered - *answer.lapsed;
  mechanism_ = answer.mechanism;
  if (answer.changes > changes_) {
    changes_ = answer.changes;
    record({call == HolderCall::kApply, before, after});
  }
  return answer.status;
}

Status GuestFault::step(TimePoint /*now*/) {
  RETURN_IF_ERROR(guests_.listen(Duration::zero()));
  ASSIGN_OR_RETURN(std::optional<HolderAnswer> answer, look());
  if (const Status broken = std::exchange(broken_, {}); !broken.ok()) return broken;
  if (!answer) return okStatus();
  RETURN_IF_ERROR(answer->status);
  evidence_ = std::move(answer->evidence);
  return okStatus();
}

Status GuestFault::demandEvidence() { return asked_ ? okStatus() : ask(HolderCall::kEvidence); }

injector::Evidence GuestFault::verdict() const {
  if (evidence_) return *evidence_;
  return {held_.kind, "none", "the guest has not told what it has seen", false};
}

Status GuestFault::ask(HolderCall call) {
  if (!holder_) {
    return errorf(Code::kInternal, "{} in host {} was not prepared", held_.kind, host_);
  }
  RETURN_IF_ERROR(gone_);
  RETURN_IF_ERROR(guests_.tellFault(*holder_, toJson(call)));
  asked_ = call;
  return okStatus();
}

Result<HolderAnswer> GuestFault::await() {
  const TimePoint deadline = now() + answer_budget_;
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<HolderAnswer> answer, look());
    if (answer) return *answer;
    if (now() >= deadline) {
      return errorf(Code::kDeadlineExceeded, "{} in host {} has not answered for {}", held_.kind,
                    host_, formatDuration(answer_budget_));
    }
    RETURN_IF_ERROR(guests_.listen(kAnswerPoll));
  }
}

Result<std::optional<HolderAnswer>> GuestFault::look() {
  while (const std::optional<json> message = guests_.faultSaid(*holder_)) {
    const std::string type = message->value("type", "");
    if (type == "answer" && asked_) {
      asked_.reset();
      ASSIGN_OR_RETURN(HolderAnswer answer, holderAnswerFromJson(*message));
      return std::optional<HolderAnswer>(std::move(answer));
    }
    if (type == "broken") {
      broken_ = brokenFromJson(*message);
    } else {
      gone_ = errorf(Code::kUnavailable, "what holds {} in host {} has ended: {}", held_.kind,
                     host_, message->value("message", ""));
    }
  }
  RETURN_IF_ERROR(gone_);
  return std::optional<HolderAnswer>();
}

}  // namespace faultline::rdma_vm
