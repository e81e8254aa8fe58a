#include "injector/faults/rdma_port_down.h"

#include <spdlog/spdlog.h>

#include "injector/faults/fault_list.h"
#include "injector/faults/rdma_counters.h"
#include "injector/netlink/interface.h"

namespace faultline::injector {

constinit const FaultKind kRdmaPortDownKind{
    .name = "rdma_port_down",
    .summary =
        "The port of an RDMA device goes down with its network interface, until the "
        "fault ends.",
    .sees =
        "the asynchronous event IBV_EVENT_PORT_ERR at once; a sender on this node fails "
        "(rxe: a local operation error); IBV_EVENT_PORT_ACTIVE when it is over",
    .evidence =
        "the RDMA port is DOWN and its physical state no longer LINK_UP, as RDMA netlink "
        "tells; its counter of received packets stands still; the port of the other end, "
        "where that is on this machine",
    .undo =
        "the interface is switched on again, addresses and routes that were lost are put back, "
        "and the port is waited for",
    .cutsLink = true,
    .target = TargetKind::kRdma,
    .unproven =
        "on adapters (proven on rxe): some keep their wire lit when they are switched "
        "off, so that the other end sees silence",
    .makeForDevice = makeOne<RdmaPortDown>};

namespace {

Status observePort(rdma::TargetDevice& device, RdmaPortView& view, TimePoint now) {
  ASSIGN_OR_RETURN(const rdma::Port port, device.readPort());
  ASSIGN_OR_RETURN(const std::uint64_t received, receivedPackets(device));
  view.state = port.state;
  view.physical = port.physical;
  view.received.observe(received, now);
  return okStatus();
}

std::string describePort(const rdma::TargetDevice& device, const RdmaPortView& view) {
  return fmt::format(
      "port {} is {}, physically {}, and has received nothing for {:.0f} ms (at {} "
      "packets)",
      device.portName(), toString(view.state), toString(view.physical),
      toMilliseconds(view.received.stillFor()), view.received.value());
}

}  // namespace

bool RdmaPortView::isDown() const {
  return state == rdma::PortState::kDown && physical != rdma::PhysicalState::kLinkUp &&
         received.stillFor() >= kStill;
}

RdmaPortDown::RdmaPortDown(const FaultParameters& /*parameters*/, const rdma::RdmaTarget& target)
    : target_(target) {}

RdmaPortDown::~RdmaPortDown() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("rdma_port_down: {}", status.message());
}

Status RdmaPortDown::prepare() {
  ASSIGN_OR_RETURN(rdma::TargetDevice device, rdma::TargetDevice::open(target_));
  RETURN_IF_ERROR(requirePortOfNetdev(device.identity()));
  RETURN_IF_ERROR(device.readNetdev().status());
  RETURN_IF_ERROR(device.requireNoBond());
  RETURN_IF_ERROR(device.requireNotManagement());
  RETURN_IF_ERROR(device.requireActive());
  ASSIGN_OR_RETURN(configuration_, netlink::InterfaceConfiguration::read(
                                       device.route(), device.portAtFirst().netdev_ifindex));
  if (!target_.other_end.empty()) {
    ASSIGN_OR_RETURN(rdma::TargetDevice other,
                     rdma::TargetDevice::open({.device = target_.other_end}));
    RETURN_IF_ERROR(other.requireActive());
    other_end_.emplace(std::move(other));
  }
  device_.emplace(std::move(device));
  return okStatus();
}

Status RdmaPortDown::apply() {
  own_ = other_ = {};
  RETURN_IF_ERROR(device_->findAgain());
  if (other_end_) RETURN_IF_ERROR(other_end_->findAgain());
  applied_ = true;  // before the call: if it fails half-way, revert() has something to do
  return transit(true, [&] {
    return netlink::setUp(device_->route(), device_->portAtFirst().netdev_ifindex, false);
  });
}

Status RdmaPortDown::step(TimePoint now) {
  if (conclusive()) return okStatus();
  RETURN_IF_ERROR(observePort(*device_, own_, now));
  return other_end_ ? observePort(*other_end_, other_, now) : okStatus();
}

bool RdmaPortDown::conclusive() const {
  // Behind a switch, or with a wire that stays lit, the other end keeps its port; silence is what
  // it has in any case.
  return own_.isDown() && (!other_end_ || other_.received.stillFor() >= kStill);
}

Evidence RdmaPortDown::verdict() const {
  std::string observed = describePort(*device_, own_);
  observed += other_end_ ? "; at the other end " + describePort(*other_end_, other_)
                         : "; nobody was asked at the other end";
  if (!isSoftware(device_->identity().device_class)) observed += " (unproven on hardware)";
  return {"rdma_port_down", "state and counters of the RDMA port", std::move(observed),
          conclusive()};
}

Status RdmaPortDown::revert() {
  if (!applied_) return okStatus();
  const int ifindex = device_->portAtFirst().netdev_ifindex;
  RETURN_IF_ERROR(transit(false, [&] { return netlink::setUp(device_->route(), ifindex, true); }));
  RETURN_IF_ERROR(device_->findAgain());  // it may have been made again meanwhile
  RETURN_IF_ERROR(device_->awaitActive());
  // A gateway can only be restored when its interface has its carrier again.
  RETURN_IF_ERROR(
      configuration_.restore(device_->route(), netlink::settlingOnHost(configuration_.ifindex())));
  ASSIGN_OR_RETURN(const int missing, configuration_.missing(device_->route()));
  if (missing > 0) {
    return errorf(Code::kNotRestored, "rdma_port_down: {} addresses or routes of {} are missing",
                  missing, device_->portAtFirst().netdev);
  }
  applied_ = false;
  return okStatus();
}

}  // namespace faultline::injector
