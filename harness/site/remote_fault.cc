#include "harness/site/remote_fault.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/units.h"

namespace faultline::site {

namespace {

constexpr Duration kAnswerPoll = 1ms;

}  // namespace

wire::HeldFault heldFault(const std::string& kind, const injector::FaultParameters& parameters) {
  wire::HeldFault held{.kind = kind};
  for (const auto& [name, value] : parameters.all()) {
    held.parameters[name] = formatParameter(value);
  }
  return held;
}

RemoteFault::RemoteFault(HolderLine& line, int node, std::string where, wire::HeldFault held,
                         RemoteManner manner)
    : line_(line),
      node_(node),
      where_(std::move(where)),
      held_(std::move(held)),
      manner_(std::move(manner)) {}

RemoteFault::~RemoteFault() {
  // One that could not be made sure of has been waited for, and told of.
  Status status = unsure_ ? okStatus() : revert();
  if (holder_) {
    const Status ended = line_.endFault(*holder_);
    if (status.ok() && !isUndoneThere()) status = ended;
  }
  if (!status.ok()) spdlog::error("{} on {}: {}", held_.kind, where_, status.message());
}

Duration RemoteFault::evidenceBudget() const { return manner_.answers; }

Status RemoteFault::prepare() {
  if (!holder_) {
    gone_ = okStatus();  // that of one before
    ASSIGN_OR_RETURN(holder_, line_.startFault(node_, held_));
  }
  RETURN_IF_ERROR(ask(wire::FaultCall::kPrepare));
  ASSIGN_OR_RETURN(const wire::HolderAnswer answer, await());
  mechanism_ = answer.mechanism;
  return said(answer);
}

Status RemoteFault::said(const wire::HolderAnswer& answer) const {
  const Status status = answer.outcome.status();
  return status.ok() || !isUndoneThere() ? status : status.withContext(where_);
}

void RemoteFault::noLongerThan(Duration longest) {
  held_.longest = std::max(longest, std::min(longest + manner_.spare, manner_.longest));
}

Status RemoteFault::apply() {
  if (isUndoneThere() && !gone_.ok()) RETURN_IF_ERROR(holdAnew());
  applied_ = true;  // before the call: if it fails half-way, revert() has something to do
  evidence_.reset();
  lapsed_.reset();
  return change(wire::FaultCall::kApply);
}

Status RemoteFault::holdAnew() {
  if (holder_) RETURN_IF_ERROR(line_.endFault(*holder_));
  holder_.reset();
  asked_.reset();
  gone_ = broken_ = okStatus();
  return prepare();
}

Status RemoteFault::revert() {
  if (!applied_) return okStatus();
  Status status = takeBack();
  if (!status.ok()) status = makeSureOfUndo(status);
  if (status.ok()) applied_ = false;
  return status;
}

Status RemoteFault::makeSureOfUndo(const Status& why) {
  if (!isUndoneThere()) return why.code() == Code::kAborted ? okStatus() : why;
  if (heard_) return why;  // the holder's own word
  const TimePoint before = now();
  // A holder that is there still would hold it as long as we wait; the node undoes what loses its.
  if (holder_ && gone_.ok()) {
    (void)line_.endFault(*holder_);  // an error: its node is lost, and undoes it by the lease
    holder_.reset();
    asked_.reset();
    gone_ = why;
  }
  unsure_ = true;
  RETURN_IF_ERROR(manner_.undone(why));
  unsure_ = false;
  record({.broken = false, .before = before, .after = now()});
  return okStatus();
}

Status RemoteFault::takeBack() {
  heard_ = false;
  if (asked_) {  // evidence that nobody waited for, or a call that took too long
    // Whoever gathers evidence hears nothing else until it has it.
    const bool blocked = isUndoneThere() && asked_ == wire::FaultCall::kEvidence;
    const auto late = await(/*matters=*/!blocked);
    if (late.ok()) take(*late, TimePoint::min());
    if (asked_) return late.status();  // what comes yet would be taken for the answer to this call
  }
  return change(wire::FaultCall::kRevert);
}

Status RemoteFault::change(wire::FaultCall call) {
  const TimePoint before = now();
  RETURN_IF_ERROR(ask(call));
  ASSIGN_OR_RETURN(const wire::HolderAnswer answer, await(call == wire::FaultCall::kRevert));
  heard_ = true;
  if (answer.lapsed) lapsed_ = answer.lapsed;
  mechanism_ = answer.mechanism;
  // To apply it changes something for the first time, so that the error of the clocks cannot put
  // that before the request.
  take(answer, call == wire::FaultCall::kApply ? before : TimePoint::min());
  return said(answer);
}

void RemoteFault::take(const wire::HolderAnswer& answer, TimePoint earliest) {
  for (const wire::FaultChange& change : answer.changes) {
    const TimePoint begun = std::max(earliest, change.before);
    record({change.broken, begun, std::max(begun, change.after), change.peer});
  }
}

Status RemoteFault::step(TimePoint /*now*/) {
  RETURN_IF_ERROR(line_.listen(Duration::zero()));
  const Result<std::optional<wire::HolderAnswer>> looked = look();
  if (!looked.ok() && isUndoneThere()) {
    evidence_ = {held_.kind, "none", looked.status().message(), false};
    return okStatus();
  }
  RETURN_IF_ERROR(looked.status());
  if (const Status broken = std::exchange(broken_, {}); !broken.ok()) return broken;
  if (!*looked) return okStatus();
  wire::HolderAnswer answer = **looked;
  take(answer, TimePoint::min());
  RETURN_IF_ERROR(answer.outcome.status());
  wire::Evidence& told = answer.evidence;
  evidence_ = injector::Evidence{.fault = std::move(told.fault),
                                 .kind = std::move(told.kind),
                                 .observed = std::move(told.observed),
                                 .ok = told.ok,
                                 .numbers = std::move(told.numbers)};
  return okStatus();
}

Status RemoteFault::demandEvidence() {
  return asked_ || evidence_ ? okStatus() : ask(wire::FaultCall::kEvidence);
}

injector::Evidence RemoteFault::verdict() const {
  if (evidence_) return *evidence_;
  return {held_.kind, "none", where_ + " has not told what it has seen", false};
}

Status RemoteFault::ask(wire::FaultCall call) {
  RETURN_IF_ERROR(gone_);
  if (!holder_) {
    return errorf(Code::kInternal, "{} on {} was not prepared", held_.kind, where_);
  }
  RETURN_IF_ERROR(line_.tellFault(*holder_, wire::CallFault{call}));
  asked_ = call;
  return okStatus();
}

Result<wire::HolderAnswer> RemoteFault::await(bool matters) {
  const TimePoint asked = now();
  const TimePoint deadline = asked + manner_.answers;
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<wire::HolderAnswer> answer, look());
    if (answer) return *answer;
    if (now() >= asked + (matters ? manner_.lastAnswer : Duration::zero())) {
      RETURN_IF_ERROR(unlessGivenUp(stop_, fmt::format("{} on {}", held_.kind, where_)));
    }
    if (now() >= deadline) {
      return errorf(Code::kDeadlineExceeded, "{} on {} has not answered for {}", held_.kind, where_,
                    formatDuration(manner_.answers));
    }
    RETURN_IF_ERROR(line_.listen(kAnswerPoll));
  }
}

Result<std::optional<wire::HolderAnswer>> RemoteFault::look() {
  while (gone_.ok()) {
    std::optional<wire::FromHolder> said = line_.faultSaid(*holder_);
    if (!said) return std::optional<wire::HolderAnswer>();
    if (auto* const answer = std::get_if<wire::HolderAnswer>(&*said)) {
      if (!asked_) return errorf(Code::kInternal, "an answer that nobody has asked for");
      asked_.reset();
      return std::optional(std::move(*answer));
    }
    if (const auto* const gone = std::get_if<wire::Gone>(&*said)) {
      gone_ = errorf(Code::kUnavailable, "what holds {} on {} has ended: {}", held_.kind, where_,
                     gone->message);
    } else if (const Status broken = std::get<wire::HolderBroken>(*said).outcome.status();
               isUndoneThere()) {  // that was its last word
      gone_ = errorf(Code::kUnavailable, "{} on {} was ended there: {}", held_.kind, where_,
                     broken.message());
    } else {
      broken_ = broken;
    }
  }
  return gone_;
}

}  // namespace faultline::site
