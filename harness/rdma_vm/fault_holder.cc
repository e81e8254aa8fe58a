#include "harness/rdma_vm/fault_holder.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "harness/launch/lifeline.h"
#include "harness/launch/process.h"
#include "harness/rdma_vm/vm_plan.h"
#include "injector/fault_table.h"
#include "injector/faults/rdma_registry.h"
#include "injector/faults/verbs_fault.h"
#include "injector/netlink/namespace.h"
#include "injector/verbs/rule.h"

namespace faultline::rdma_vm {

using nlohmann::json;

namespace {

constexpr Duration kFirstMessageBudget = 30s;

constexpr std::array<std::pair<HolderCall, std::string_view>, 4> kCalls{{
    {HolderCall::kPrepare, "prepare"},
    {HolderCall::kApply, "apply"},
    {HolderCall::kEvidence, "evidence"},
    {HolderCall::kRevert, "revert"},
}};

json toJson(const Status& status) {
  return {{"code", static_cast<int>(status.code())}, {"message", status.message()}};
}

Status statusFromJson(const json& message) {
  const int code = message.at("code").get<int>();
  if (code == static_cast<int>(Code::kOk)) return okStatus();
  const bool known = code > 0 && code <= static_cast<int>(Code::kInternal);
  return Status(known ? static_cast<Code>(code) : Code::kInternal,
                message.at("message").get<std::string>());
}

class Holder {
 public:
  Holder(launch::MessageChannel& controller, Result<std::unique_ptr<injector::Fault>> made)
      : controller_(controller), trouble_(made.status()) {
    if (made.ok()) fault_ = std::move(*made);
  }

  /// Until the channel closes.
  Status serve();

 private:
  Status obey(HolderCall call);
  Status step();

  launch::MessageChannel& controller_;
  Status trouble_;
  std::unique_ptr<injector::Fault> fault_;
  bool steps_ = false;
};

Status Holder::serve() {
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<json> message, controller_.receive());
    if (message) {
      ASSIGN_OR_RETURN(const HolderCall call, holderCallFromJson(*message));
      RETURN_IF_ERROR(obey(call));
      continue;
    }
    if (steps_) RETURN_IF_ERROR(step());
    pollfd ready{controller_.fd(), POLLIN, 0};
    if (::poll(&ready, 1, steps_ ? injector::kLookAgainMs : -1) < 0 && errno != EINTR) {
      return Status::fromErrno(errno, "wait for the controller");
    }
  }
}

Status Holder::obey(HolderCall call) {
  HolderAnswer answer;
  if (!fault_) {
    answer.status = trouble_;
    return controller_.send(rdma_vm::toJson(answer));
  }
  switch (call) {
    case HolderCall::kPrepare:
      answer.status = fault_->prepare();
      break;
    case HolderCall::kApply:
      answer.status = fault_->apply();
      // At once: a program that fails by it may be gone soon, and with it what it has counted.
      if (answer.status.ok()) answer.status = fault_->step(now());
      steps_ = answer.status.ok();
      break;
    case HolderCall::kEvidence: {
      auto evidence = fault_->evidence();
      answer.status = evidence.status();
      if (evidence.ok()) answer.evidence = std::move(*evidence);
      break;
    }
    case HolderCall::kRevert:
      steps_ = false;
      answer.status = fault_->revert();
      break;
  }
  answer.mechanism = fault_->mechanism();
  answer.changes = fault_->transitions().size();
  const TimePoint answered = now();
  if (answer.changes > 0) answer.since = answered - fault_->transitions().back().after;
  if (const auto lapsed = fault_->lapsedAt()) answer.lapsed = answered - *lapsed;
  return controller_.send(rdma_vm::toJson(answer));
}

Status Holder::step() {
  const Status stepped = fault_->step(now());
  if (stepped.ok()) return stepped;
  steps_ = false;
  json message = toJson(stepped);
  message["type"] = "broken";
  return controller_.send(message);
}

Status holdOne(launch::MessageChannel& controller) {
  ASSIGN_OR_RETURN(const json message, controller.receiveWithin(kFirstMessageBudget));
  ASSIGN_OR_RETURN(const HeldFault held, heldFaultFromJson(message));
  ASSIGN_OR_RETURN(const UniqueFd network, netlink::currentNamespace());
  return holdFault(controller, makeHeldFault(held, network.get()));
}

}  // namespace

Result<std::unique_ptr<injector::Fault>> makeHeldFault(const HeldFault& held, int network) {
  const injector::FaultKind* const kind = injector::findFaultKind(held.kind);
  if (kind == nullptr) return errorf(Code::kNotFound, "a guest has no fault '{}'", held.kind);
  ASSIGN_OR_RETURN(const injector::FaultParameters parameters,
                   injector::FaultParameters::parse(*kind, held.parameters));
  if (kind->target == injector::TargetKind::kRdma) {
    return injector::makeRdmaFault(held.kind, parameters, {.device = rdmaDeviceName(held.rail)});
  }
  const auto effect = injector::verbs::findEffect(held.kind);
  if (!effect) return errorf(Code::kUnsupported, "a guest has no fault '{}'", held.kind);
  return std::unique_ptr<injector::Fault>(std::make_unique<injector::VerbsFault>(
      *effect, parameters, injector::programsIn(network, held.startedWith)));
}

Status holdFault(launch::MessageChannel& controller,
                 Result<std::unique_ptr<injector::Fault>> fault) {
  return Holder(controller, std::move(fault)).serve();
}

json toJson(const HeldFault& fault) {
  return {{"kind", fault.kind},
          {"parameters", fault.parameters},
          {"rail", fault.rail},
          {"started_with", fault.startedWith}};
}

Result<HeldFault> heldFaultFromJson(const json& message) {
  try {
    HeldFault fault;
    message.at("kind").get_to(fault.kind);
    message.at("parameters").get_to(fault.parameters);
    message.at("rail").get_to(fault.rail);
    message.at("started_with").get_to(fault.startedWith);
    return fault;
  } catch (const json::exception& error) {
    return errorf(Code::kInvalidArgument, "a guest's fault that cannot be understood: {}",
                  error.what());
  }
}

json toJson(HolderCall call) {
  for (const auto& [value, name] : kCalls) {
    if (value == call) return {{"type", name}};
  }
  return nullptr;
}

Result<HolderCall> holderCallFromJson(const json& message) {
  const std::string type = message.is_object() ? message.value("type", "") : "";
  for (const auto& [value, name] : kCalls) {
    if (name == type) return value;
  }
  return errorf(Code::kInvalidArgument, "a fault in a guest does not understand '{}'", type);
}

json toJson(const HolderAnswer& answer) {
  json message = toJson(answer.status);
  message["type"] = "answer";
  message["mechanism"] = answer.mechanism;
  message["changes"] = answer.changes;
  message["since_ns"] = answer.since.count();
  message["lapsed_ns"] = answer.lapsed ? json(answer.lapsed->count()) : json();
  message["evidence"] = {{"fault", answer.evidence.fault},
                         {"kind", answer.evidence.kind},
                         {"observed", answer.evidence.observed},
                         {"ok", answer.evidence.ok},
                         {"numbers", answer.evidence.numbers}};
  return message;
}

Result<HolderAnswer> holderAnswerFromJson(const json& message) {
  try {
    HolderAnswer answer;
    answer.status = statusFromJson(message);
    message.at("mechanism").get_to(answer.mechanism);
    message.at("changes").get_to(answer.changes);
    answer.since = Duration(message.at("since_ns").get<Duration::rep>());
    const json& lapsed = message.at("lapsed_ns");
    if (!lapsed.is_null()) answer.lapsed = Duration(lapsed.get<Duration::rep>());
    const json& evidence = message.at("evidence");
    evidence.at("fault").get_to(answer.evidence.fault);
    evidence.at("kind").get_to(answer.evidence.kind);
    evidence.at("observed").get_to(answer.evidence.observed);
    evidence.at("ok").get_to(answer.evidence.ok);
    evidence.at("numbers").get_to(answer.evidence.numbers);
    return answer;
  } catch (const json::exception& error) {
    return errorf(Code::kIo, "an answer of a fault in a guest that cannot be understood: {}",
                  error.what());
  }
}

Status brokenFromJson(const json& message) {
  try {
    const Status status = statusFromJson(message);
    if (!status.ok()) return status;
  } catch (const json::exception&) {
  }
  return errorf(Code::kInternal, "a fault in a guest has failed, and did not say why");
}

int faultHolderMain() {
  const launch::Lifeline lifeline{UniqueFd(launch::kLifelineFd)};
  launch::MessageChannel controller{UniqueFd(launch::kMessagesFd)};
  // A channel that closes is how it ends: the fault is taken back by its destructor.
  (void)holdOne(controller);
  return 0;
}

}  // namespace faultline::rdma_vm
