#include "harness/agent/fault_holder.h"

#include <poll.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "harness/launch/lifeline.h"
#include "harness/launch/process.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"
#include "injector/faults/verbs_fault.h"
#include "injector/netlink/namespace.h"
#include "injector/rdma/rdma_target.h"
#include "injector/verbs/rule.h"

namespace faultline::agent {

using nlohmann::json;

namespace {

constexpr Duration kFirstMessageBudget = 30s;

class Holder {
 public:
  Holder(launch::MessageChannel& controller, Result<std::unique_ptr<injector::Fault>> made)
      : controller_(controller), trouble_(made.status()) {
    if (made.ok()) fault_ = std::move(*made);
  }

  /// Until the channel closes.
  Status serve();

 private:
  Status obey(wire::FaultCall call);
  Status step();
  Status tell(const wire::FromHolder& message) { return controller_.send(wire::toJson(message)); }

  launch::MessageChannel& controller_;
  Status trouble_;
  std::unique_ptr<injector::Fault> fault_;
  bool steps_ = false;
  std::size_t told_ = 0;  // of its transitions
};

Status Holder::serve() {
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<json> message, controller_.receive());
    if (message) {
      ASSIGN_OR_RETURN(const auto asked, wire::fromJson<wire::ToHolder>(*message));
      const auto* const call = std::get_if<wire::CallFault>(&asked);
      if (call == nullptr) return errorf(Code::kInvalidArgument, "a second fault for a holder");
      RETURN_IF_ERROR(obey(call->call));
      continue;
    }
    if (steps_) RETURN_IF_ERROR(step());
    pollfd ready{controller_.fd(), POLLIN, 0};
    if (::poll(&ready, 1, steps_ ? injector::kLookAgainMs : -1) < 0 && errno != EINTR) {
      return Status::fromErrno(errno, "wait for the controller");
    }
  }
}

Status Holder::obey(wire::FaultCall call) {
  wire::HolderAnswer answer;
  if (!fault_) {
    answer.outcome = wire::Outcome::of(trouble_);
    return tell(answer);
  }
  Status status;
  switch (call) {
    case wire::FaultCall::kPrepare:
      status = fault_->prepare();
      break;
    case wire::FaultCall::kApply:
      status = fault_->apply();
      // At once: a program that fails by it may be gone soon, and with it what it has counted.
      if (status.ok()) status = fault_->step(now());
      steps_ = status.ok();
      break;
    case wire::FaultCall::kEvidence: {
      auto evidence = fault_->evidence();
      status = evidence.status();
      if (!evidence.ok()) break;
      answer.evidence = {.fault = std::move(evidence->fault),
                         .kind = std::move(evidence->kind),
                         .observed = std::move(evidence->observed),
                         .ok = evidence->ok,
                         .numbers = std::move(evidence->numbers)};
      break;
    }
    case wire::FaultCall::kRevert:
      steps_ = false;
      status = fault_->revert();
      break;
  }
  answer.outcome = wire::Outcome::of(status);
  answer.mechanism = fault_->mechanism();
  for (; told_ < fault_->transitions().size(); ++told_) {
    const injector::Transition& change = fault_->transitions()[told_];
    answer.changes.push_back({.broken = change.broken,
                              .before = change.before,
                              .after = change.after,
                              .peer = change.peer});
  }
  answer.lapsed = fault_->lapsedAt();
  return tell(answer);
}

Status Holder::step() {
  const Status stepped = fault_->step(now());
  if (stepped.ok()) return stepped;
  steps_ = false;
  return tell(wire::HolderBroken{wire::Outcome::of(stepped)});
}

Status holdOne(launch::MessageChannel& controller) {
  ASSIGN_OR_RETURN(const json message, controller.receiveWithin(kFirstMessageBudget));
  ASSIGN_OR_RETURN(const auto held,
                   (wire::firstFromJson<wire::ToHolder, wire::HeldFault>(message)));
  ASSIGN_OR_RETURN(const UniqueFd here, netlink::currentNamespace());
  ASSIGN_OR_RETURN(netlink::Socket network, netlink::Socket::open(here.get()));
  return holdFault(controller, makeHeldFault(held, network));
}

}  // namespace

Result<std::unique_ptr<injector::Fault>> makeHeldFault(const wire::HeldFault& held,
                                                       netlink::Socket& network) {
  const injector::FaultKind* const kind = injector::findFaultKind(held.kind);
  if (kind == nullptr) return errorf(Code::kNotFound, "a node has no fault '{}'", held.kind);
  ASSIGN_OR_RETURN(const injector::FaultParameters parameters,
                   injector::FaultParameters::parse(*kind, held.parameters));
  if (kind->target == injector::TargetKind::kRdma) {
    return injector::makeRdmaFault(held.kind, parameters, {.device = held.device});
  }
  if (kind->target == injector::TargetKind::kProcesses && !kind->ofQueuePairs) {
    netlink::LinkTarget target;
    target.nic.socket = &network;
    target.startedWith = held.startedWith;
    return injector::makeFault(held.kind, parameters, target);
  }
  const auto effect = injector::verbs::findEffect(held.kind);
  if (!effect) return errorf(Code::kUnsupported, "a node has no fault '{}'", held.kind);
  return std::unique_ptr<injector::Fault>(std::make_unique<injector::VerbsFault>(
      *effect, parameters, injector::programsIn(network.namespaceFd(), held.startedWith)));
}

Status holdFault(launch::MessageChannel& controller,
                 Result<std::unique_ptr<injector::Fault>> fault) {
  return Holder(controller, std::move(fault)).serve();
}

int faultHolderMain() {
  const launch::Lifeline lifeline{UniqueFd(launch::kLifelineFd)};
  launch::MessageChannel controller{UniqueFd(launch::kMessagesFd)};
  // A channel that closes is how it ends: the fault is taken back by its destructor.
  (void)holdOne(controller);
  return 0;
}

}  // namespace faultline::agent
