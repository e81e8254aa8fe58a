#include "injector/faults/flap.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "injector/faults/blackhole.h"
#include "injector/faults/fault_list.h"
#include "injector/faults/port.h"
#include "injector/faults/port_down.h"
#include "injector/faults/usual_rows.h"

namespace faultline::injector {
namespace {

constexpr double kMostFlaps = 1'000'000;
constexpr double kShortestPeriodSeconds = 0.002;
constexpr ParameterSpec kFlapCount{"count",
                                   ParameterType::kInteger,
                                   "0",
                                   "how many times it goes down; 0: again and again while the "
                                   "fault lasts, one loss per period, the last one before its end",
                                   {},
                                   0,
                                   kMostFlaps};
constexpr ParameterSpec kFlapPeriod{
    "period",
    ParameterType::kDuration,
    "500ms",
    "from one loss to the next; a loss that falls on the fault's end does not happen",
    {},
    kShortestPeriodSeconds,
    kLongestSeconds};
constexpr ParameterSpec kFlapDuty{
    "duty", ParameterType::kPercent, "50%", "share of the period in which it is down", {}, 1, 99};

/// The first loss is when the fault is applied, then there is one per period.
std::vector<LinkLoss> flaps(const FaultParameters& parameters, BitsPerSecond /*rate*/,
                            Duration longest) {
  const auto period = parameters.get<Duration>("period");
  const double share = parameters.get<Percent>("duty").value / kWholeInPercent;
  const auto down = duration_cast<Duration>(period * share);
  const auto count = parameters.get<std::int64_t>("count");
  std::vector<LinkLoss> losses;
  for (std::int64_t i = 0; i * period < longest && (count == 0 || i < count); ++i) {
    const Duration begin = i * period;
    losses.push_back({.begin = begin, .length = std::min(down, longest - begin)});
  }
  return losses;
}

constexpr std::array kPortFlapParameters{
    ParameterSpec{"how", ParameterType::kEnum, "carrier", kHowMeaning, kHow},
    kFlapCount,
    kFlapPeriod,
    kFlapDuty,
};
constexpr std::array kPathFlapParameters{kFlapCount, kFlapPeriod, kFlapDuty};

// Shorter than a detection, it may pass unnoticed.
constexpr std::array kFlapSignatures{
    Signature{{.cause = "local_nic", .orNone = true}, {.cause = "remote_nic", .orNone = true}}};
constexpr Finding kPathOrRail{.cause = "path", .orNone = true, .orRail = true};
constexpr std::array kPathFlapSignatures{Signature{kPathOrRail, kPathOrRail}};

/// Of a fault `Repeated`, whose parameters are among those of the flap.
template <typename Repeated, const FaultKind& kKind>
std::unique_ptr<Fault> makeFlap(const FaultParameters& parameters,
                                const netlink::LinkTarget& target) {
  return std::make_unique<Flap>(std::string(kKind.name), parameters,
                                std::make_unique<Repeated>(parameters, target));
}

}  // namespace

constinit const FaultKind kPortFlapKind{
    .name = "port_flap",
    .summary = "The port of one NIC goes down and comes back, again and again.",
    .sees = "port events in a train; every return is soon followed by the next loss",
    .evidence = "in each loss the other end of the cable has lost its carrier",
    .undo = "the port is switched on; addresses and routes that were lost are put back",
    .parameters = kPortFlapParameters,
    .signatures = kFlapSignatures,
    .ofWholeRails = true,
    .portEvents = PortEvents::kAgain,
    .damage = flaps,
    .needs = {KernelMechanism::kPortState},
    .make = makeFlap<PortDown, kPortFlapKind>};

constinit const FaultKind kPathFlapKind{
    .name = "path_flap",
    .summary =
        "One link swallows everything and carries again, again and again; its carrier stays "
        "up.",
    .sees = "silence that ends; what was lost waits for the transport to send it again",
    .evidence =
        "in each outage probe frames of the injector's own reach the switch from either "
        "side, and none crosses the link",
    .undo = "the switch port forwards again",
    .parameters = kPathFlapParameters,
    .signatures = kPathFlapSignatures,
    .damage = flaps,
    .needs = {KernelMechanism::kBridgePortState},
    .make = makeFlap<Blackhole, kPathFlapKind>};

Flap::Flap(std::string kind, const FaultParameters& parameters, std::unique_ptr<BriefFault> fault)
    : kind_(std::move(kind)), fault_(std::move(fault)), clock_(parameters) {}

Flap::~Flap() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("{}: {}", kind_, status.message());
}

Status Flap::prepare() {
  RETURN_IF_ERROR(fault_->prepare().withContext(kind_));
  return fault_->readyForBriefStrikes();
}

Status Flap::apply() {
  applied_ = true;
  clock_.restart();
  seen_before_ = 0;
  return toggle();
}

Status Flap::toggle() {
  const bool striking = !clock_.broken();
  if (striking) seen_before_ = seen();  // of the one before, which apply() forgets
  RETURN_IF_ERROR(striking ? fault_->apply() : fault_->heal());
  record(fault_->transitions().back());
  clock_.changed(striking, now());
  return okStatus();
}

Status Flap::step(TimePoint now) {
  RETURN_IF_ERROR(fault_->step(now));
  return clock_.due(now) ? toggle() : okStatus();
}

std::int64_t Flap::seen() const {
  return seen_before_ + (clock_.breaks() > 0 && fault_->glimpsed() ? 1 : 0);
}

bool Flap::conclusive() const { return clock_.breaks() > 0 && seen() >= clock_.breaks(); }

Evidence Flap::verdict() const {
  std::string observed = fmt::format("{} of {} outages were seen to hit", seen(), clock_.breaks());
  if (clock_.breaks() > 0) observed += fmt::format("; in the last {}", fault_->glimpse());
  return {kind_, "every outage by itself", observed, conclusive()};
}

Status Flap::revert() {
  if (!applied_) return okStatus();
  if (clock_.broken()) RETURN_IF_ERROR(toggle());
  clock_.stop();
  RETURN_IF_ERROR(fault_->revert().withContext(kind_));
  applied_ = false;
  return okStatus();
}

}  // namespace faultline::injector
