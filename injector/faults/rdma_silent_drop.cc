#include "injector/faults/rdma_silent_drop.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "injector/faults/fault_list.h"
#include "injector/faults/rdma_counters.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/drop_filter.h"
#include "injector/netlink/root_queue.h"

namespace faultline::injector {
namespace {

constexpr std::array<std::string_view, 3> kRdmaWays{"both", "out", "in"};
constexpr std::array<std::string_view, 2> kRdmaFrames{"roce", "all"};
constexpr std::array kRdmaSilentDropParameters{
    ParameterSpec{"direction", ParameterType::kEnum, "both",
                  "out: what the device sends; in: what it should receive", kRdmaWays},
    ParameterSpec{"frames", ParameterType::kEnum, "roce",
                  "roce: RoCE v2 only, so that everything else on the interface lives; all: every "
                  "frame of the interface (devices in software only)",
                  kRdmaFrames},
};

}  // namespace

constinit const FaultKind kRdmaSilentDropKind{
    .name = "rdma_silent_drop",
    .summary = "Packets of an RDMA device vanish while its port stays ACTIVE.",
    .sees = "nothing for a long time, then IBV_WC_RETRY_EXC_ERR",
    .evidence =
        "carrier and the RDMA port stay. In software: probe packets, which left the interface "
        "before the fault, no longer do; the device's counter of received packets stands "
        "still. Adapters: their counters of packets and requests, which moved before under the "
        "job's load, stand still, while requests are repeated",
    .undo =
        "in software: the filter or queue is removed, and probe packets leave again; "
        "adapters: the rule is destroyed, and goes with the process at the latest",
    .parameters = kRdmaSilentDropParameters,
    .cutsLink = true,
    .target = TargetKind::kRdma,
    .unproven =
        "on adapters (a steering rule of mlx5, others are refused; proven on rxe): the "
        "commands are exact and tested, no adapter has dropped a packet",
    .makeForDevice = makeOne<RdmaSilentDrop>};

namespace {

constexpr std::uint64_t kProbes = 8;
constexpr Duration kProbesLeaveWithin = 500ms;
// How long an adapter's load is looked at before packets are dropped.
constexpr std::chrono::milliseconds kDropLoadWindow = 500ms;
// NCCL's queue pairs wait 4.3 s (exponent 20) for an answer before they repeat; then a second of
// silence.
constexpr Duration kDropPatience = 6s;
// Each look at an adapter's counters is some commands to its firmware.
constexpr Duration kLookEvery = 10ms;

}  // namespace

bool SilentDropView::portLives() const { return carrier && state == rdma::PortState::kActive; }

bool SilentDropView::proven() const {
  if (!portLives()) return false;
  const bool nothing_leaves = probes >= kProbes && left.stillFor() >= kStill;
  const bool nothing_comes = accepted.stillFor() >= kStill;
  if (out && !nothing_leaves) return false;
  if (in && !nothing_comes) return false;
  return out || arrived > 0;
}

std::string_view SilentDropView::unseen() const {
  if (!in || arrived > 0) return "";
  return "; nothing came, so that the loss of what comes in was not seen";
}

RdmaSilentDrop::RdmaSilentDrop(const FaultParameters& parameters, const rdma::RdmaTarget& target)
    : target_(target),
      out_(parameters.get<std::string>("direction") != "in"),
      in_(parameters.get<std::string>("direction") != "out"),
      only_roce_(parameters.get<std::string>("frames") == "roce"),
      silence_(out_, in_) {}

RdmaSilentDrop::~RdmaSilentDrop() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("rdma_silent_drop: {}", status.message());
}

Status RdmaSilentDrop::prepare() {
  ASSIGN_OR_RETURN(rdma::TargetDevice device, rdma::TargetDevice::open(target_));
  ASSIGN_OR_RETURN(const rdma::DropMechanism mechanism,
                   dropMechanism(device.identity(), only_roce_));
  if (mechanism == rdma::DropMechanism::kSteeringRule) return prepareAdapter(std::move(device));
  RETURN_IF_ERROR(device.readNetdev().status());
  if (!only_roce_) RETURN_IF_ERROR(device.requireNotManagement());
  RETURN_IF_ERROR(device.requireActive());
  ASSIGN_OR_RETURN(netlink::RoceTap tap,
                   netlink::RoceTap::open(device.route(), device.portAtFirst().netdev_ifindex));
  tap_.emplace(std::move(tap));
  device_.emplace(std::move(device));
  return requireProbesLeave();
}

Status RdmaSilentDrop::prepareAdapter(rdma::TargetDevice device) {
  if (device.device().ports != 1) {
    return errorf(
        Code::kUnsupported,
        "rdma_silent_drop of {}: it has {} ports, and a rule of its steering tables would be for "
        "all of them; drop packets in the switch",
        target_.device, device.device().ports);
  }
  RETURN_IF_ERROR(device.readNetdev().status());
  RETURN_IF_ERROR(device.requireActive());
  ASSIGN_OR_RETURN(rdma::SteeringCalls calls, rdma::loadSteeringCalls());
  auto rule = std::make_unique<rdma::SteeringDrop>(std::move(calls), target_.device);
  RETURN_IF_ERROR(rule->prepare({.out = out_, .in = in_}));
  ASSIGN_OR_RETURN(const AdapterCounts first, readAdapterCounts(device));
  ::poll(nullptr, 0, static_cast<int>(kDropLoadWindow.count()));
  ASSIGN_OR_RETURN(const AdapterCounts last, readAdapterCounts(device));
  silence_.setBefore(first, last);
  const std::string_view does = !in_ ? "sends" : !out_ ? "receives" : "sends and receives";
  mechanism_ = fmt::format("mlx5: a steering rule that drops what {} {} (unproven on hardware)",
                           target_.device, does);
  device_.emplace(std::move(device));
  rule_ = std::move(rule);
  return okStatus();
}

Status RdmaSilentDrop::requireProbesLeave() {
  RETURN_IF_ERROR(tap_->reset());
  const TimePoint deadline = now() + kProbesLeaveWithin;
  std::uint64_t sent = 0;
  while (true) {
    if (sent < kProbes) {
      ASSIGN_OR_RETURN(const bool accepted, tap_->sendProbe());
      if (accepted) ++sent;
    }
    ASSIGN_OR_RETURN(const netlink::RoceCount count, tap_->count());
    if (count.sent >= kProbes) return okStatus();
    if (now() >= deadline) {
      return errorf(Code::kUnavailable,
                    "rdma_silent_drop: of {} probe frames only {} have left {}: something drops or "
                    "holds them already",
                    sent, count.sent, device_->portAtFirst().netdev);
    }
    if (sent >= kProbes) ::poll(nullptr, 0, kLookAgainMs);
  }
}

Status RdmaSilentDrop::apply() {
  observing_ = false;
  view_ = {};
  view_.out = out_;
  view_.in = in_;
  RETURN_IF_ERROR(device_->findAgain());
  applied_ = true;
  if (onAdapter()) return transit(true, [&] { return applyRule(); });
  return transit(true, [&] { return install(); });
}

Status RdmaSilentDrop::applyRule() {
  silence_.restart();
  last_look_.reset();
  means_ = Means::kRule;
  return rule_->install();
}

Status RdmaSilentDrop::install() {
  const int ifindex = device_->portAtFirst().netdev_ifindex;
  std::vector<netlink::DropRule> rules;
  for (const auto& [wanted, passing] :
       {std::pair{out_, netlink::Passing::kSent}, std::pair{in_, netlink::Passing::kReceived}}) {
    if (!wanted) continue;
    rules.push_back({.passing = passing, .only_roce = only_roce_, .unnoticed = true});
  }
  Status status = netlink::addDropRules(device_->route(), ifindex, rules);
  if (status.ok()) {
    means_ = Means::kFilter;
    mechanism_ =
        fmt::format("netlink: filters (clsact, cls_bpf) on {} drop {}",
                    device_->portAtFirst().netdev, only_roce_ ? "RoCE frames" : "all frames");
    return okStatus();
  }
  if (status.code() != Code::kUnsupported) return status;
  if (in_ || only_roce_) {
    return Status(status.code(),
                  status.message() +
                      "; load the modules sch_ingress and cls_bpf (without them only "
                      "'direction: out, frames: all' is possible, by a queue)");
  }
  mechanism_ = "netlink: a blackhole queue at the root of " + device_->portAtFirst().netdev;
  status = netlink::installBlackhole(device_->route(), ifindex);
  if (status.code() == Code::kUnsupported) {
    mechanism_ =
        "netlink: netem with a loss of 100 % at the root of " + device_->portAtFirst().netdev;
    status = netlink::installNetemLoss(device_->route(), ifindex);
  }
  if (status.ok()) means_ = Means::kQueue;
  return status;
}

Status RdmaSilentDrop::step(TimePoint now) {
  if (!applied_ || conclusive()) return okStatus();
  if (onAdapter()) return stepAdapter(now);
  ASSIGN_OR_RETURN(const rdma::Counters counters, device_->readCounters());
  if (!observing_) {
    RETURN_IF_ERROR(tap_->reset());
    device_sent_before_ = sentPackets(counters).value_or(0);
    observing_ = true;
  }
  if (view_.probes < kProbes) {
    // A queue that drops a frame may tell its sender so: it was sent into the interface all the
    // same.
    RETURN_IF_ERROR(tap_->sendProbe().status());
    ++view_.probes;
  }
  ASSIGN_OR_RETURN(const netlink::RoceCount passed, tap_->count());
  ASSIGN_OR_RETURN(const rdma::Port port, device_->readPort());
  ASSIGN_OR_RETURN(const netlink::NetDevice link, device_->readNetdev());
  view_.carrier = link.carrier;
  view_.state = port.state;
  view_.device_sent = sentPackets(counters).value_or(0) - device_sent_before_;
  // The time counts from the last probe on.
  if (view_.probes >= kProbes) view_.left.observe(passed.sent, now);
  view_.arrived = passed.received;
  // Without such a counter nobody knows, and it is not proven.
  if (const auto accepted = receivedPackets(counters)) view_.accepted.observe(*accepted, now);
  return okStatus();
}

Status RdmaSilentDrop::stepAdapter(TimePoint now) {
  if (last_look_ && now - *last_look_ < kLookEvery) return okStatus();
  last_look_ = now;
  ASSIGN_OR_RETURN(const AdapterCounts counts, readAdapterCounts(*device_));
  ASSIGN_OR_RETURN(const rdma::Port port, device_->readPort());
  ASSIGN_OR_RETURN(const netlink::NetDevice link, device_->readNetdev());
  view_.carrier = link.carrier;
  view_.state = port.state;
  silence_.observe(now, counts, view_.portLives());
  observing_ = true;
  return okStatus();
}

bool RdmaSilentDrop::conclusive() const {
  return applied_ && (onAdapter() ? silence_.proven() : view_.proven());
}

Duration RdmaSilentDrop::evidenceBudget() const {
  return onAdapter() ? kDropPatience : Fault::evidenceBudget();
}

Evidence RdmaSilentDrop::adapterVerdict() const {
  return {"rdma_silent_drop", "packets and repeated requests that the adapter counts",
          fmt::format("port {} is {} and {} {} its carrier; {} (unproven on hardware)",
                      device_->portName(), toString(view_.state), device_->portAtFirst().netdev,
                      view_.carrier ? "has kept" : "has lost", silence_.describe()),
          conclusive()};
}

Evidence RdmaSilentDrop::verdict() const {
  if (!observing_) return {"rdma_silent_drop", "packets that pass", "nothing was observed", false};
  if (onAdapter()) return adapterVerdict();
  return {
      "rdma_silent_drop", "packets that pass the interface while the port is active",
      fmt::format(
          "port {} is {} and {} {} its carrier; of {} probes and {} packets that the device "
          "meant to send {} have left, none for {:.0f} ms; {} have arrived at the interface, and "
          "the device has received none for {:.0f} ms{}",
          device_->portName(), toString(view_.state), device_->portAtFirst().netdev,
          view_.carrier ? "has kept" : "has lost", view_.probes, view_.device_sent,
          view_.left.value(), toMilliseconds(view_.left.stillFor()), view_.arrived,
          toMilliseconds(view_.accepted.stillFor()), view_.unseen()),
      conclusive()};
}

Status RdmaSilentDrop::remove() {
  const int ifindex = device_->portAtFirst().netdev_ifindex;
  switch (means_) {
    case Means::kNone:  // it was never there
      break;
    case Means::kFilter:
      RETURN_IF_ERROR(netlink::removeDropRules(device_->route(), ifindex));
      break;
    case Means::kQueue:
      RETURN_IF_ERROR(netlink::removeRootQueue(device_->route(), ifindex));
      break;
    case Means::kRule:
      RETURN_IF_ERROR(rule_->remove());
      break;
  }
  means_ = Means::kNone;
  return okStatus();
}

Status RdmaSilentDrop::revert() {
  if (!applied_) return okStatus();
  if (means_ != Means::kNone) RETURN_IF_ERROR(transit(false, [&] { return remove(); }));
  if (!onAdapter()) RETURN_IF_ERROR(requireProbesLeave());
  applied_ = false;
  return okStatus();
}

}  // namespace faultline::injector
