#include "harness/site/rdma_vm/laboratory_faults.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/units.h"
#include "harness/site/rdma_vm/vm_plan.h"
#include "harness/site/remote_fault.h"
#include "injector/faults/registry.h"
#include "injector/verbs/rule.h"

namespace faultline::rdma_vm {
namespace {

// A guest in software on a busy machine answers within some 10 ms to some seconds.
constexpr Duration kEvidenceBudget = 15s;
constexpr Duration kWholeBudget = 30s;
constexpr int kLookAgainMs = 10;
// A guest in software on a busy machine takes seconds for what takes milliseconds elsewhere, and to
// put a port back waits for it. Most need less than the other for a last answer. A fault ends with
// its guest, which is thrown away.
const site::RemoteManner kGuestManner{.answers = 60s, .lastAnswer = 1s};

std::string describe(const std::optional<wire::RailState>& state) {
  if (!state) return "the guest has not told of it";
  return fmt::format("the guest's NIC {} carrier, its RDMA port is '{}' ('{}')",
                     state->carrier ? "has" : "has no", state->rdma, state->physical);
}

}  // namespace

RailFault::RailFault(std::string kind, RailLine& rails, int host, int rail)
    : kind_(std::move(kind)), rails_(rails), host_(host), rail_(rail) {}

RailView RailFault::view() const {
  return {.seen = seen_,
          .silent = from_.stillFor(),
          .unserved = to_.stillFor(),
          .arrived = from_.value() - from_before_,
          .dropped = port().dropped.load() - dropped_before_};
}

Duration RailFault::evidenceBudget() const { return kEvidenceBudget; }

Status RailFault::prepare() {
  ASSIGN_OR_RETURN(const std::vector<wire::RailState> states, rails_.railStates(host_));
  const wire::RailState& state = states.at(static_cast<std::size_t>(rail_));
  if (isWhole(state)) return okStatus();
  return errorf(Code::kUnavailable, "{}: rail {} of host {} is not whole before it: {}", kind(),
                rail_, host_, describe(state));
}

Status RailFault::apply() {
  applied_ = true;  // before the call: if it fails half-way, revert() has something to do
  asked_ = false;
  seen_.reset();
  from_ = to_ = {};
  from_before_ = port().inFrames.load();
  dropped_before_ = port().dropped.load();
  return transit(true, [&] { return strike(true); });
}

Status RailFault::step(TimePoint now) {
  RETURN_IF_ERROR(rails_.listen(Duration::zero()));
  from_.observe(port().inFrames.load(), now);
  to_.observe(port().outFrames.load(), now);
  if (conclusive()) return okStatus();
  if (!asked_) {
    asked_ = true;
    return rails_.askForRails(host_);
  }
  if (auto states = rails_.toldRails(host_)) {
    asked_ = false;
    seen_ = states->at(static_cast<std::size_t>(rail_));
  }
  return okStatus();
}

Status RailFault::revert() {
  if (!applied_) return okStatus();
  Status status = transit(false, [&] { return strike(false); });
  if (status.ok()) {
    applied_ = false;
    status = awaitWhole();
  }
  if (status.code() != Code::kAborted) return status;
  applied_ = false;  // the hosts are switched off, and whatever was done to them is gone
  return okStatus();
}

Status RailFault::awaitWhole() {
  const TimePoint deadline = now() + kWholeBudget;
  for (;;) {
    ASSIGN_OR_RETURN(const std::vector<wire::RailState> states, rails_.railStates(host_));
    const wire::RailState& state = states.at(static_cast<std::size_t>(rail_));
    if (isWhole(state)) return okStatus();
    if (now() > deadline) {
      return errorf(Code::kNotRestored, "{} was taken back, and after {} {}", kind(),
                    formatDuration(kWholeBudget), describe(state));
    }
    ::poll(nullptr, 0, kLookAgainMs);
  }
}

void RailFault::undo() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("{}: {}", kind(), status.message());
}

injector::Evidence CablePull::verdict() const {
  const RailView known = view();
  return {kind(), "the guest's own port, and what the switch gets from it",
          fmt::format("{}; the switch has got nothing from it for {:.0f} ms", describe(known.seen),
                      toMilliseconds(known.silent)),
          isPulled(known)};
}

Status SwitchDrop::strike(bool broken) {
  rails().setBlocked(host(), rail(), broken);
  return okStatus();
}

injector::Evidence SwitchDrop::verdict() const {
  const RailView known = view();
  return {kind(), "frames at the switch, and the guest's own port",
          fmt::format(
              "{} frames of the host arrived, {} from and to it were dropped, and none went "
              "to it for {:.0f} ms; {}",
              known.arrived, known.dropped, toMilliseconds(known.unserved), describe(known.seen)),
          isCutOff(known)};
}

wire::HeldFault heldFault(const std::string& kind, const injector::FaultParameters& parameters,
                          int rail, const std::string& started_with) {
  wire::HeldFault held = site::heldFault(kind, parameters);
  held.device = rdmaDeviceName(rail);
  if (!started_with.empty()) held.startedWith.push_back(started_with);
  return held;
}

Result<std::unique_ptr<injector::Fault>> makeLaboratoryFault(
    const std::string& kind, const injector::FaultParameters& parameters, Laboratory& laboratory,
    int host, int rail, const std::string& started_with) {
  std::unique_ptr<injector::Fault> fault;
  const injector::FaultKind* const row = injector::findFaultKind(kind);
  const auto outside = row == nullptr ? injector::Outside::kNot : row->outside;
  if (outside == injector::Outside::kCable) {
    fault = std::make_unique<CablePull>(kind, laboratory, host, rail);
  }
  if (outside == injector::Outside::kSwitch) {
    fault = std::make_unique<SwitchDrop>(kind, laboratory, host, rail);
  }
  const bool inside = row != nullptr && (row->target == injector::TargetKind::kRdma ||
                                         injector::verbs::findEffect(kind).has_value());
  if (inside) {
    fault = std::make_unique<site::RemoteFault>(laboratory, host, fmt::format("host {}", host),
                                                heldFault(kind, parameters, rail, started_with),
                                                kGuestManner);
  }
  if (fault) return fault;
  return errorf(Code::kUnsupported, "{}: a soft-RoCE laboratory has no such fault", kind);
}

}  // namespace faultline::rdma_vm
