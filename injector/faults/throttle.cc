#include "injector/faults/throttle.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "injector/faults/fault_list.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/shaper.h"

namespace faultline::injector {
namespace {

constexpr std::array<std::string_view, 3> kDirections{"both", "tx", "rx"};
constexpr std::array kThrottleParameters{
    ParameterSpec{"rate",
                  ParameterType::kRateOrPercent,
                  "",
                  "what is left: a rate, or a percentage of the rate the link has now",
                  {},
                  0.1,
                  100},
    ParameterSpec{"direction", ParameterType::kEnum, "both",
                  "tx: what the node sends; rx: what it receives", kDirections},
};
// Whoever sends over the link says so; it lives.
constexpr std::array kThrottleSignatures{Signature{{"degraded"}, {"degraded"}}};

std::vector<LinkLoss> throttled(const FaultParameters& parameters, BitsPerSecond rate,
                                Duration /*longest*/) {
  const ParameterValue& left = parameters.value("rate");
  double share = 1;
  if (const auto* percent = std::get_if<Percent>(&left)) share = percent->value / kWholeInPercent;
  if (const auto* limit = std::get_if<Rate>(&left); limit != nullptr && rate > 0) {
    share = static_cast<double>(limit->bitsPerSecond) / static_cast<double>(rate);
  }
  const double lost = std::clamp(1 - share, 0.0, 1.0);
  const auto& direction = parameters.get<std::string>("direction");
  return {LinkLoss{.tx = direction == "rx" ? 0 : lost, .rx = direction == "tx" ? 0 : lost}};
}

}  // namespace

constinit const FaultKind kThrottleKind{
    .name = "throttle",
    .summary = "One link becomes slow but stays up (a gray failure).",
    .sees = "nothing but time and counters",
    .evidence =
        "bytes per second that leave the queue while there is a backlog; without load of the "
        "job, a probe stream of the injector's own",
    .undo = "the former rate is set again",
    .parameters = kThrottleParameters,
    .signatures = kThrottleSignatures,
    .ofWholeRails = true,
    .slows = true,
    .damage = throttled,
    .needs = {KernelMechanism::kShaper},
    .make = makeOne<Throttle>};

namespace {

// A socket may have about 200 KiB under way, counted with the kernel's own overhead.
constexpr Bytes kBacklogPerSocket = 64 * 1024;
constexpr Bytes kMostSockets = 16;
constexpr std::uint32_t kMark = 0x7407;  // nobody counts these frames
// To send a frame takes some 30 us of a busy machine: a look every millisecond, and in one step as
// many as a window lasts for where the rate is high.
constexpr int kFramesAtOnce = 32;
constexpr int kPartsOfFeeding = 16;
constexpr Duration kPatience = 500ms;
constexpr int kWindowsOfPatience = 4;

}  // namespace

Throttle::Throttle(const FaultParameters& parameters, const netlink::LinkTarget& target)
    : target_(target), rate_(parameters.value("rate")) {
  const std::string& direction = parameters.get<std::string>("direction");
  if (direction != "rx") {
    sides_.emplace_back().name = "tx";
    sides_.back().from = target.nic;
    sides_.back().to = target.attachment;
  }
  if (direction != "tx") {
    sides_.emplace_back().name = "rx";
    sides_.back().from = target.attachment;
    sides_.back().to = target.nic;
  }
}

Throttle::~Throttle() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("throttle: {}", status.message());
}

Status Throttle::prepare() {
  for (Side& side : sides_) {
    const auto state = netlink::readShaper(*side.from.socket, side.from.ifindex);
    if (state.status().code() == Code::kNotFound) {
      return errorf(Code::kUnsupported, "throttle: {}; give the cluster a rail_rate",
                    state.status().message());
    }
    if (!state.ok()) return state.status();
    ASSIGN_OR_RETURN(side.plan, planThrottle(state->rate, rate_));
    side.meter = side.plan.meter();
    ASSIGN_OR_RETURN(const netlink::NetDevice other,
                     netlink::readNetDevice(*side.to.socket, side.to.ifindex));
    side.destination = other.mac;
  }
  return okStatus();
}

Status Throttle::apply() {
  applied_ = true;
  probing_ = false;
  for (Side& side : sides_) side.meter = side.plan.meter();
  return transit(true, [&] { return setRates(&ThrottlePlan::after); });
}

Status Throttle::setRates(BitsPerSecond ThrottlePlan::*rate) {
  for (const Side& side : sides_) {
    RETURN_IF_ERROR(netlink::setShaperRate(*side.from.socket, side.from.ifindex, side.plan.*rate));
  }
  return okStatus();
}

Status Throttle::step(TimePoint now) {
  bool probes = probing_;
  for (Side& side : sides_) {
    if (side.proven()) continue;
    RETURN_IF_ERROR(look(side, now));
    // One after the other: a machine that cannot fill both queues may be able to fill one.
    if (probes) RETURN_IF_ERROR(probe(side));
    probes = false;
  }
  return okStatus();
}

Status Throttle::look(Side& side, TimePoint now) {
  ASSIGN_OR_RETURN(const netlink::ShaperState state,
                   netlink::readShaper(*side.from.socket, side.from.ifindex));
  side.kernel_rate = state.rate;
  side.backlog = state.backlog;
  if (state.rate == side.plan.after) {
    side.meter.observe(now, state.sent_bytes, state.backlog);
  } else {
    side.meter = side.plan.meter();
  }
  return okStatus();
}

Status Throttle::probe(Side& side) {
  if (side.kernel_rate != side.plan.after) return okStatus();
  for (int part = 0; part < kPartsOfFeeding && !side.proven(); ++part) {
    RETURN_IF_ERROR(feed(side));
    RETURN_IF_ERROR(look(side, faultline::now()));
  }
  return okStatus();
}

Status Throttle::demandEvidence() {
  probing_ = true;
  for (Side& side : sides_) {
    if (!side.probes.empty()) continue;
    const Bytes sockets =
        std::clamp(side.plan.probe_backlog / kBacklogPerSocket + 1, Bytes{1}, kMostSockets);
    for (Bytes index = 0; index < sockets; ++index) {
      ASSIGN_OR_RETURN(netlink::FrameSocket socket,
                       netlink::FrameSocket::open(*side.from.socket, side.from.ifindex, kMark));
      side.probes.push_back(std::move(socket));
    }
  }
  return okStatus();
}

/// Sends frames until enough of them wait in the queue, but no more than pass between two looks. At
/// first the shaper's burst lets some pass at once; the next calls make up for it.
Status Throttle::feed(Side& side) {
  Bytes backlog = side.backlog;
  int frames = 0;
  for (const netlink::FrameSocket& probe : side.probes) {
    while (backlog < side.plan.probe_backlog && frames < kFramesAtOnce) {
      ASSIGN_OR_RETURN(const bool sent, probe.send(side.destination, side.plan.probe_frame));
      if (!sent) break;
      backlog += static_cast<Bytes>(side.plan.probe_frame);
      ++frames;
    }
  }
  return okStatus();
}

bool Throttle::conclusive() const {
  return std::all_of(sides_.begin(), sides_.end(), [](const Side& side) { return side.proven(); });
}

Duration Throttle::evidenceBudget() const {
  Duration longest{};
  for (const Side& side : sides_) longest = std::max(longest, side.plan.window);
  return kPatience + kWindowsOfPatience * longest;
}

Evidence Throttle::verdict() const {
  Evidence evidence{"throttle", "rate of leaving the queue under backlog", "", true, {}};
  for (const Side& side : sides_) {
    const auto measured = side.meter.measured();
    evidence.ok = evidence.ok && proofOf(side.plan, measured) != ThrottleProof::kNothing;
    evidence.observed +=
        fmt::format("{}{}: {}; the shaper says {}{}", evidence.observed.empty() ? "" : "; ",
                    side.name, inWords(side.plan, measured),
                    side.kernel_rate ? formatRate(*side.kernel_rate) : std::string("nothing yet"),
                    probing_ ? ", own probes" : "");
    if (measured) evidence.numbers[side.name + "_bits_per_second"] = measured->rate;
  }
  return evidence;
}

Status Throttle::revert() {
  if (!applied_) return okStatus();
  RETURN_IF_ERROR(transit(false, [&] { return setRates(&ThrottlePlan::before); }));
  for (const Side& side : sides_) {
    ASSIGN_OR_RETURN(const netlink::ShaperState state,
                     netlink::readShaper(*side.from.socket, side.from.ifindex));
    if (state.rate != side.plan.before) {
      return errorf(Code::kInternal, "throttle: interface {} has {} after reverting to {}",
                    side.from.ifindex, formatRate(state.rate), formatRate(side.plan.before));
    }
  }
  applied_ = false;
  return okStatus();
}

}  // namespace faultline::injector
