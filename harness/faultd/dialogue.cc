#include "harness/faultd/dialogue.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/units.h"
#include "injector/safety/entry.h"

namespace faultline::faultd {

Result<wire::ToService> Dialogue::take(const nlohmann::json& message, TimePoint now) {
  if (silent()) RETURN_IF_ERROR(wire::checkVersion(message, wire::kAgentVersion));
  ASSIGN_OR_RETURN(wire::ToService said, wire::fromJson<wire::ToService>(message));
  const auto* const strike = std::get_if<wire::ServiceStrike>(&said);
  const auto* const call = std::get_if<wire::CallFault>(&said);
  const bool asks = std::holds_alternative<wire::AskService>(said);
  if (silent() != (strike != nullptr || asks)) {
    return errorf(Code::kInvalidArgument, "{}",
                  silent() ? "the first message must be of type strike or ask"
                           : "one connection is for one strike, or one question");
  }
  if (asked_) return errorf(Code::kInvalidArgument, "a question has one answer, and no more");
  if (call != nullptr && call_) {
    return errorf(Code::kInvalidArgument, "a call before the answer to the one before");
  }
  if (silent()) first_ = now;
  heard_ = now;
  if (strike != nullptr) strike_ = *strike;
  if (call != nullptr) call_ = call->call;
  asked_ = asks;
  return said;
}

Status Dialogue::answered(const wire::HolderAnswer& answer, TimePoint now) {
  if (!call_) return errorf(Code::kInternal, "an answer to no call");
  const wire::FaultCall call = *std::exchange(call_, std::nullopt);
  if (answer.outcome.code == Code::kOk && call == wire::FaultCall::kPrepare) admitted_ = true;
  if (call == wire::FaultCall::kApply && answer.outcome.code == Code::kOk) {
    strike_ends_ = now + strike_->longest;
  }
  if (call == wire::FaultCall::kRevert) strike_ends_.reset();
  return okStatus();
}

bool Dialogue::outlasts(TimePoint now) const {
  return strike_ends_ && now >= *strike_ends_ + safety::kUndoGrace;
}

std::optional<TimePoint> Dialogue::due() const {
  if (asked_) return std::nullopt;
  if (silent()) return connected_ + kFirstMessageBudget;
  TimePoint due = heard_ + strike_->lease;
  if (!admitted_) due = std::min(due, first_ + kAdmissionBudget);
  if (strike_ends_) due = std::min(due, *strike_ends_ + safety::kUndoGrace);
  return due;
}

std::optional<Status> Dialogue::overdue(TimePoint now) const {
  const auto at = due();
  if (!at || now < *at) return std::nullopt;
  if (silent()) {
    return errorf(Code::kDeadlineExceeded, "nothing was said for {}",
                  formatDuration(kFirstMessageBudget));
  }
  if (now >= heard_ + strike_->lease) {
    return errorf(Code::kDeadlineExceeded, "nothing was heard for the lease, {}",
                  formatDuration(strike_->lease));
  }
  if (!admitted_) {
    return errorf(Code::kDeadlineExceeded, "within {} it has asked for nothing that is allowed",
                  formatDuration(kAdmissionBudget));
  }
  return errorf(Code::kDeadlineExceeded,
                "its longest, {}, is over, and the process that holds it has not ended it",
                formatDuration(strike_->longest));
}

}  // namespace faultline::faultd
