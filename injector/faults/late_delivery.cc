#include "injector/faults/late_delivery.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "injector/faults/fault_list.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/interface.h"

namespace faultline::injector {
namespace {

constexpr std::array kLateDeliveryParameters{
    ParameterSpec{"hold",
                  ParameterType::kDuration,
                  "80ms",
                  "how long everything is held back, from the beginning of the fault; the fault "
                  "itself lasts longer, so that it is seen to come out",
                  {},
                  0.001,
                  kLongestSeconds},
    ParameterSpec{"direction", ParameterType::kEnum, "both", kWayMeaning, kWays},
};
constexpr std::array kLateDeliverySignatures{
    Signature{{"path", "outgoing"}, {"path", "incoming"}, "direction", "out"},
    Signature{{"path", "incoming"}, {"path", "outgoing"}, "direction", "in"},
    Signature{{"path", "both"}, {"path", "both"}}};

}  // namespace

constinit const FaultKind kLateDeliveryKind{
    .name = "late_delivery",
    .summary = "One link holds back what is sent over it, its carrier up, and delivers it late.",
    .sees = "silence; then old bytes that everybody had given up",
    .evidence =
        "while it holds, probe frames of the injector's own do not cross it; then all that was "
        "held comes out, the probe frames too",
    .undo =
        "the filter on the switch's port is removed, and what is held is sent; both die with "
        "the switch's namespace and the program",
    .parameters = kLateDeliveryParameters,
    .signatures = kLateDeliverySignatures,
    .alone = true,
    .needs = {KernelMechanism::kDropFilter},
    .make = makeOne<LateDelivery>};

namespace {

// A queue on the way out empties in some 10 ms.
constexpr Duration kReleaseBudget = 500ms;

}  // namespace

LateDelivery::LateDelivery(const FaultParameters& parameters, const netlink::LinkTarget& target)
    : target_(target),
      direction_(parameters.get<std::string>("direction")),
      hold_(parameters.get<Duration>("hold")) {}

LateDelivery::~LateDelivery() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("late_delivery: {}", status.message());
}

Status LateDelivery::prepare() {
  RETURN_IF_ERROR(CrossingProbe::requireWhole(target_).withContext("late_delivery"));
  ASSIGN_OR_RETURN(CrossingProbe probe, CrossingProbe::open(target_));
  probe_.emplace(std::move(probe));
  sides_.clear();
  if (direction_ != "in") RETURN_IF_ERROR(openSide(/*out=*/true));
  if (direction_ != "out") RETURN_IF_ERROR(openSide(/*out=*/false));
  netlink::Socket& socket = *target_.attachment.socket;
  RETURN_IF_ERROR(netlink::addDropRules(socket, target_.attachment.ifindex, {}));
  return netlink::removeDropRules(socket, target_.attachment.ifindex);
}

/// What the node sends is taken where it arrives and sent by its NIC again; what it should receive
/// is taken where it comes into the switch, or is sent by the switch itself, and sent by the
/// switch's port. Broadcasts of others are lost.
Status LateDelivery::openSide(bool out) {
  const netlink::LinkEnd& port = target_.attachment;
  std::vector<netlink::HeldSource> sources;
  if (out) {
    sources.push_back({.ifindex = port.ifindex});
  } else {
    ASSIGN_OR_RETURN(const netlink::NetDevice own,
                     netlink::readNetDevice(*port.socket, port.ifindex));
    ASSIGN_OR_RETURN(const netlink::NetDevice nic,
                     netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
    sources.push_back({.ifindex = own.bridge_ifindex, .passing = netlink::Passing::kSent});
    for (const int sibling : target_.siblings) {
      sources.push_back({.ifindex = sibling, .destination = nic.mac});
    }
  }
  ASSIGN_OR_RETURN(netlink::FrameHold hold,
                   netlink::FrameHold::open(*port.socket, sources, out ? target_.nic : port));
  sides_.push_back({.out = out, .hold = std::move(hold)});
  return okStatus();
}

Status LateDelivery::apply() {
  probing_ = released_ = silent_ = leaked_ = false;
  std::vector<netlink::DropRule> rules;
  for (Side& side : sides_) {
    side.done = false;
    side.lost = side.twice = 0;
    rules.push_back({side.out ? netlink::Passing::kReceived : netlink::Passing::kSent, 1});
  }
  held_ = true;
  const Status status = transit(true, [&]() -> Status {
    // A frame that passes between the two calls comes twice, which no network forbids.
    for (Side& side : sides_) RETURN_IF_ERROR(side.hold.begin());
    RETURN_IF_ERROR(
        netlink::addDropRules(*target_.attachment.socket, target_.attachment.ifindex, rules));
    for (Side& side : sides_) {
      ASSIGN_OR_RETURN(const netlink::HoldCounts before, side.hold.counts());
      side.twice = before.taken;
    }
    return okStatus();
  });
  if (!status.ok()) {  // addDropRules leaves nothing behind
    held_ = false;
    for (Side& side : sides_) (void)side.hold.end();
  }
  until_ = now() + hold_;
  return status;
}

Status LateDelivery::step(TimePoint now) {
  if (held_) {
    RETURN_IF_ERROR(look());
    return now >= until_ ? beginRelease() : okStatus();
  }
  return released_ ? release() : okStatus();
}

/// Probes that are held come out with the rest: only while the link holds they must not cross.
Status LateDelivery::look() {
  if (!probe_) return okStatus();
  if (!std::exchange(probing_, true)) RETURN_IF_ERROR(probe_->restart());
  RETURN_IF_ERROR(probe_->step());
  leaked_ = leaked_ || crossed();
  silent_ = probe_->allSent() && probe_->arrived() > 0 && probe_->control() > 0;
  return okStatus();
}

bool LateDelivery::crossed() const {
  return std::ranges::any_of(sides_, [&](const Side& side) { return crossed(side) > 0; });
}

Status LateDelivery::beginRelease() {
  const Status whole = transit(false, [&]() -> Status {
    for (Side& side : sides_) {
      ASSIGN_OR_RETURN(const netlink::HoldCounts dropped, side.hold.counts());
      side.twice -= dropped.taken;
    }
    // In this order: what passes between the two comes twice, and is not lost.
    RETURN_IF_ERROR(
        netlink::removeDropRules(*target_.attachment.socket, target_.attachment.ifindex));
    for (Side& side : sides_) RETURN_IF_ERROR(side.hold.end());
    return okStatus();
  });
  RETURN_IF_ERROR(whole);
  held_ = false;
  for (Side& side : sides_) {
    ASSIGN_OR_RETURN(const netlink::HoldCounts counts, side.hold.counts());
    side.lost = counts.lost;
    side.twice += counts.taken;
  }
  released_ = true;
  return release();
}

Status LateDelivery::release() {
  for (Side& side : sides_) {
    if (side.done) continue;
    ASSIGN_OR_RETURN(side.done, side.hold.release());
  }
  return probing_ ? probe_->step() : okStatus();
}

bool LateDelivery::proven(const Side& side) const {
  return side.done && side.lost == 0 && side.hold.refused() == 0 && crossed(side) > 0;
}

bool LateDelivery::conclusive() const {
  return released_ && silent_ && !leaked_ &&
         std::ranges::all_of(sides_, [&](const Side& side) { return proven(side); });
}

Duration LateDelivery::evidenceBudget() const { return hold_ + kReleaseBudget; }

Evidence LateDelivery::verdict() const {
  std::string observed =
      fmt::format("while the link held, {}", !silent_  ? "no probes were seen to reach the switch"
                                             : leaked_ ? "probes crossed it"
                                                       : "probes reached the switch, none crossed");
  for (const Side& side : sides_) {
    const netlink::HeldFrames& came = side.hold.released();
    observed += fmt::format(
        "; {}: {} bytes in {} frames came out {}, at most {} of them twice; {} found no room, {} "
        "met "
        "a port that was down; {} of {} probes crossed late",
        side.out ? "out" : "in", came.bytes, came.frames, side.done ? "afterwards" : "so far",
        side.twice, side.lost, side.hold.refused(), probing_ ? crossed(side) : 0,
        probing_ ? probe_->sent() : 0);
  }
  return {"late_delivery", "frames held and delivered late", observed, conclusive()};
}

Status LateDelivery::revert() {
  if (held_) RETURN_IF_ERROR(beginRelease());
  if (!released_) return okStatus();
  const auto done = [&] { return std::ranges::all_of(sides_, &Side::done); };
  for (const TimePoint deadline = now() + kReleaseBudget; !done();) {
    RETURN_IF_ERROR(release());
    if (now() >= deadline) {
      return errorf(Code::kInternal, "late_delivery: what was held does not go out");
    }
    if (!done()) ::poll(nullptr, 0, kLookAgainMs);
  }
  return okStatus();
}

}  // namespace faultline::injector
