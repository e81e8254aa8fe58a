#include "injector/faults/rdma_silent_drop.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "injector/faults/rdma_counters.h"
#include "injector/netlink/drop_filter.h"
#include "injector/netlink/root_queue.h"

namespace faultline::injector {
namespace {

constexpr std::uint64_t kProbes = 8;
constexpr Duration kProbeBudget = 500ms;

}  // namespace

bool SilentDropView::proven() const {
  if (!carrier || state != rdma::PortState::kActive) return false;
  const bool nothing_leaves = probes >= kProbes && left.stillFor() >= kStill;
  const bool nothing_comes = accepted.stillFor() >= kStill;
  if (out && !nothing_leaves) return false;
  if (in && !nothing_comes) return false;
  return out || arrived > 0;
}

RdmaSilentDrop::RdmaSilentDrop(const FaultParameters& parameters, const rdma::RdmaTarget& target)
    : target_(target),
      out_(parameters.get<std::string>("direction") != "in"),
      in_(parameters.get<std::string>("direction") != "out"),
      only_roce_(parameters.get<std::string>("frames") == "roce") {}

RdmaSilentDrop::~RdmaSilentDrop() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("rdma_silent_drop: {}", status.message());
}

Status RdmaSilentDrop::prepare() {
  ASSIGN_OR_RETURN(rdma::TargetDevice device, rdma::TargetDevice::open(target_));
  ASSIGN_OR_RETURN(const rdma::DropMechanism mechanism, dropMechanism(device.identity()));
  if (mechanism == rdma::DropMechanism::kSteeringRule) {
    const Status refusal = requireTrafficControl(device.identity(), "rdma_silent_drop");
    return Status(refusal.code(),
                  refusal.message() +
                      "; its own way, a steering rule with the action drop, is not built yet. Drop "
                      "packets in the switch");
  }
  if (only_roce_ && device.identity().device_class == rdma::DeviceClass::kSiw) {
    return errorf(Code::kUnsupported,
                  "rdma_silent_drop of {}: siw sends TCP and no RoCE; say 'frames: all'",
                  target_.device);
  }
  RETURN_IF_ERROR(device.readNetdev().status());
  if (!only_roce_) RETURN_IF_ERROR(device.requireNotManagement());
  RETURN_IF_ERROR(device.requireActive());
  ASSIGN_OR_RETURN(netlink::RoceTap tap,
                   netlink::RoceTap::open(device.route(), device.portAtFirst().netdev_ifindex));
  tap_.emplace(std::move(tap));
  device_.emplace(std::move(device));
  return requireProbesLeave();
}

Status RdmaSilentDrop::requireProbesLeave() {
  RETURN_IF_ERROR(tap_->reset());
  const TimePoint deadline = now() + kProbeBudget;
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
  applied_ = true;
  return transit(true, [&] { return install(); });
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
  if (conclusive()) return okStatus();
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
  ASSIGN_OR_RETURN(const netlink::Link link, device_->readNetdev());
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

Evidence RdmaSilentDrop::verdict() const {
  if (!observing_) return {"rdma_silent_drop", "packets that pass", "nothing was observed", false};
  return {
      "rdma_silent_drop", "packets that pass the interface while the port is active",
      fmt::format(
          "port {} is {} and {} {} its carrier; of {} probes and {} packets that the device "
          "meant to send {} have left, none for {:.0f} ms; {} have arrived at the interface, and "
          "the device has received none for {:.0f} ms",
          device_->portName(), toString(view_.state), device_->portAtFirst().netdev,
          view_.carrier ? "has kept" : "has lost", view_.probes, view_.device_sent,
          view_.left.value(), toMilliseconds(view_.left.stillFor()), view_.arrived,
          toMilliseconds(view_.accepted.stillFor())),
      conclusive()};
}

Status RdmaSilentDrop::remove() {
  const int ifindex = device_->portAtFirst().netdev_ifindex;
  const Means means = means_;
  if (means == Means::kNone) return okStatus();  // it was never there
  RETURN_IF_ERROR(means == Means::kFilter ? netlink::removeDropRules(device_->route(), ifindex)
                                          : netlink::removeRootQueue(device_->route(), ifindex));
  means_ = Means::kNone;
  return okStatus();
}

Status RdmaSilentDrop::revert() {
  if (!applied_) return okStatus();
  if (means_ != Means::kNone) RETURN_IF_ERROR(transit(false, [&] { return remove(); }));
  RETURN_IF_ERROR(requireProbesLeave());
  applied_ = false;
  return okStatus();
}

}  // namespace faultline::injector
