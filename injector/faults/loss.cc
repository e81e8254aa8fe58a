#include "injector/faults/loss.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/units.h"
#include "injector/faults/fault_list.h"
#include "injector/faults/host_loss.h"
#include "injector/faults/share_proof.h"
#include "injector/faults/still_watch.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/counters.h"
#include "injector/netlink/interface.h"
#include "injector/safety/host_fault.h"

namespace faultline::injector {
namespace {

constexpr std::array<std::string_view, 2> kOneWay{"out", "in"};
constexpr std::array kOneWayLossParameters{
    ParameterSpec{"direction", ParameterType::kEnum, "out",
                  "out: what the node sends is lost; in: what it should receive", kOneWay},
};
constexpr std::array kOneWaySignatures{
    Signature{{"path", "outgoing"}, {"path", "incoming"}, "direction", "out"},
    Signature{{"path", "incoming"}, {"path", "outgoing"}, "direction", "in"}};

std::vector<LinkLoss> oneWay(const FaultParameters& parameters, BitsPerSecond /*rate*/,
                             Duration /*longest*/) {
  const bool out = parameters.get<std::string>("direction") == "out";
  return {LinkLoss{.tx = out ? 1.0 : 0.0, .rx = out ? 0.0 : 1.0}};
}
// What a full queue drops is missing as well.
constexpr ShareTolerance kQueues{.more = kQueueShare};
constexpr std::array kLossParameters{
    ParameterSpec{"percent",
                  ParameterType::kPercent,
                  "",
                  "share of the frames that are lost, at random; a frame is what the kernel moves "
                  "at once, up to 64 KiB of a TCP stream",
                  {},
                  1,
                  99},
    ParameterSpec{"direction", ParameterType::kEnum, "both", kWayMeaning, kWays},
};

Result<safety::HostFault> losingOneWay(const FaultParameters& parameters) {
  const bool out = parameters.get<std::string>("direction") == "out";
  safety::HostFault fault;
  fault.operations.emplace_back(safety::DropFrames{.sent = out, .received = !out});
  fault.watch = std::make_unique<HostOneWay>(out);
  return fault;
}

Result<safety::HostFault> losing(const FaultParameters& parameters) {
  const double percent = parameters.get<Percent>("percent").value;
  const auto& direction = parameters.get<std::string>("direction");
  const safety::LoseFrames lose{.sentPercent = direction == "in" ? 0 : percent,
                                .receivedPercent = direction == "out" ? 0 : percent};
  safety::HostFault fault;
  fault.operations.emplace_back(lose);
  fault.watch = std::make_unique<HostLoss>(lose.sentPercent / kWholeInPercent,
                                           lose.receivedPercent / kWholeInPercent);
  return fault;
}

}  // namespace

constinit const FaultKind kOneWayLossKind{
    .name = "one_way_loss",
    .summary = "One link loses everything in one direction while its carrier stays up.",
    .sees = "silence, though the other direction still works",
    .evidence = "probe frames of the injector's own cross the link in one direction only",
    .undo = "the filter on the switch's port is removed; it dies with the switch's namespace",
    .parameters = kOneWayLossParameters,
    .cutsLink = true,
    .signatures = kOneWaySignatures,
    .alone = true,
    .damage = oneWay,
    .needs = {KernelMechanism::kDropFilter},
    .make = makeOne<OneWayLoss>,
    .makeOnHost = losingOneWay};

constinit const FaultKind kLossKind{
    .name = "loss",
    .summary = "One link loses a share of its frames at random.",
    .sees = "retransmissions, control messages that must be repeated",
    .evidence = "the share of probe frames of the injector's own that do not cross the link",
    .undo = "the filter on the switch's port is removed; it dies with the switch's namespace",
    .parameters = kLossParameters,
    .signatures = kAnySignatures,
    .alone = true,
    .needs = {KernelMechanism::kDropFilter},
    .make = makeOne<RandomLoss>,
    .makeOnHost = losing};

Loss::Loss(std::string kind, const Shares& lost, const netlink::LinkTarget& target)
    : kind_(std::move(kind)), lost_(lost), target_(target) {}

Loss::~Loss() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("{}: {}", kind_, status.message());
}

/// `factor` 0: all is there, and nothing is lost.
Status Loss::install(double factor) {
  std::vector<netlink::DropRule> rules;
  if (lost_.out > 0) rules.push_back({netlink::Passing::kReceived, factor * lost_.out});
  if (lost_.in > 0) rules.push_back({netlink::Passing::kSent, factor * lost_.in});
  return netlink::addDropRules(*target_.attachment.socket, target_.attachment.ifindex, rules);
}

Status Loss::prepare() {
  RETURN_IF_ERROR(CrossingProbe::requireWhole(target_).withContext(kind_));
  RETURN_IF_ERROR(install(0).withContext(kind_));
  return netlink::removeDropRules(*target_.attachment.socket, target_.attachment.ifindex);
}

Status Loss::apply() {
  applied_ = true;
  probing_ = false;
  const Status status = transit(true, [&] { return install(1); });
  if (!status.ok()) applied_ = false;  // addDropRules leaves nothing behind
  return status;
}

Status Loss::step(TimePoint now) {
  if (probing_ && conclusive()) return okStatus();
  ASSIGN_OR_RETURN(const netlink::LinkCounters port,
                   netlink::readCounters(*target_.attachment.socket, target_.attachment.ifindex));
  if (!probing_) {
    if (probe_) {
      RETURN_IF_ERROR(probe_->restart());
    } else {
      const int probes = std::max(probesForShare(lost_.out), probesForShare(lost_.in));
      ASSIGN_OR_RETURN(CrossingProbe probe, CrossingProbe::open(target_, probes));
      probe_.emplace(std::move(probe));
    }
    received_before_ = port.rx_packets;
    reached_.reset();
    probing_ = true;
  }
  RETURN_IF_ERROR(probe_->step());
  ASSIGN_OR_RETURN(const netlink::NetDevice link,
                   netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
  carrier_ = link.carrier;
  received_ = port.rx_packets - received_before_;
  latest_ = now;
  const bool there = probe_->allSent() && probe_->control() > 0 &&
                     received_ >= static_cast<std::uint64_t>(probe_->sent());
  if (there && !reached_) reached_ = now;
  return okStatus();
}

bool Loss::conclusive() const {
  return probing_ && reached_ && latest_ - *reached_ >= kStill && carrier_ &&
         fitsShare(lost_.out, probe_->sent(), probe_->sent() - probe_->out(), kQueues) &&
         fitsShare(lost_.in, probe_->sent(), probe_->sent() - probe_->in(), kQueues);
}

Evidence Loss::verdict() const {
  if (!probing_) return {kind_, "probes across the link", "nothing was observed", false};
  return {
      kind_, "probes across the link",
      fmt::format("the NIC {} its carrier; of {} probes in each direction {} left the switch by "
                  "other ports: {}; {} left it towards the NIC: {}; the switch received {} "
                  "frames of the NIC",
                  carrier_ ? "kept" : "lost", probe_->sent(), probe_->out(),
                  shareInWords("lost", lost_.out, probe_->sent(), probe_->sent() - probe_->out()),
                  probe_->in(),
                  shareInWords("lost", lost_.in, probe_->sent(), probe_->sent() - probe_->in()),
                  received_),
      conclusive()};
}

Status Loss::revert() {
  if (!applied_) return okStatus();
  RETURN_IF_ERROR(transit(false, [&] {
    return netlink::removeDropRules(*target_.attachment.socket, target_.attachment.ifindex);
  }));
  applied_ = false;
  return okStatus();
}

OneWayLoss::OneWayLoss(const FaultParameters& parameters, const netlink::LinkTarget& target)
    : Loss("one_way_loss",
           parameters.get<std::string>("direction") == "out" ? Shares{.out = 1, .in = 0}
                                                             : Shares{.out = 0, .in = 1},
           target) {}

RandomLoss::RandomLoss(const FaultParameters& parameters, const netlink::LinkTarget& target)
    : Loss(
          "loss",
          [&] {
            const double share = parameters.get<Percent>("percent").value / kWholeInPercent;
            const std::string& direction = parameters.get<std::string>("direction");
            return Shares{.out = direction == "in" ? 0 : share,
                          .in = direction == "out" ? 0 : share};
          }(),
          target) {}

}  // namespace faultline::injector
