#include "injector/faults/port_down.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "injector/faults/fault_list.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/counters.h"

namespace faultline::injector {
namespace {

constexpr std::array kPortDownParameters{
    ParameterSpec{"how", ParameterType::kEnum, "carrier", kHowMeaning, kHow},
};

}  // namespace

constinit const FaultKind kPortDownKind{
    .name = "port_down",
    .summary = "The port of one NIC goes down and stays down until the fault ends.",
    .sees = "the NIC's own node sees a port event at once; its peers, behind a switch, see nothing",
    .evidence = "the other end of the cable has lost its carrier and its counters stand still",
    .undo = "the port is switched on again; addresses and routes that were lost are put back",
    .parameters = kPortDownParameters,
    .cutsLink = true,
    .signatures = kPortSignatures,
    .ofWholeRails = true,
    .outside = Outside::kCable,
    .portEvents = PortEvents::kOnce,
    .damage = allOfIt,
    .needs = {KernelMechanism::kPortState},
    .make = makeOne<PortDown>};

PortDown::PortDown(const FaultParameters& parameters, const netlink::LinkTarget& target)
    : port_(target, parameters.get<std::string>("how")) {}

PortDown::~PortDown() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("port_down: {}", status.message());
}

Status PortDown::prepare() { return port_.prepare(); }

Status PortDown::apply() {
  const netlink::LinkEnd& end = port_.otherEnd();
  ASSIGN_OR_RETURN(const netlink::NetDevice link, netlink::readNetDevice(*end.socket, end.ifindex));
  losses_before_ = link.carrier_down_count;
  losses_ = 0;
  applied_ = down_ = true;  // before the call: if it fails half-way, revert() has something to do
  carrier_ = true;
  received_ = sent_ = {};
  return transit(true, [&] { return port_.down(); });
}

Status PortDown::step(TimePoint now) {
  if (conclusive()) return okStatus();
  const netlink::LinkEnd& end = port_.otherEnd();
  ASSIGN_OR_RETURN(const netlink::NetDevice link, netlink::readNetDevice(*end.socket, end.ifindex));
  ASSIGN_OR_RETURN(const netlink::LinkCounters counters,
                   netlink::readCounters(*end.socket, end.ifindex));
  carrier_ = link.carrier;
  if (applied_) losses_ = link.carrier_down_count - losses_before_;
  received_.observe(counters.rx_packets, now);
  sent_.observe(counters.tx_packets, now);
  return okStatus();
}

std::string PortDown::glimpse() const {
  return fmt::format("{} counted {} loss of its carrier", port_.otherEndName(), losses_);
}

bool PortDown::conclusive() const {
  return !carrier_ && std::min(received_.stillFor(), sent_.stillFor()) >= kStill;
}

Evidence PortDown::verdict() const {
  const Duration still = std::min(received_.stillFor(), sent_.stillFor());
  return {
      "port_down", "carrier and counters of the other end",
      fmt::format("{} {} its carrier; its counters stood still for {:.0f} ms (at {} packets in, "
                  "{} out)",
                  port_.otherEndName(), carrier_ ? "has kept" : "has lost", toMilliseconds(still),
                  received_.value(), sent_.value()),
      conclusive()};
}

Status PortDown::heal() {
  RETURN_IF_ERROR(transit(false, [&] { return port_.up(); }));
  down_ = false;
  return okStatus();
}

Status PortDown::revert() {
  if (!applied_) return okStatus();
  if (down_) RETURN_IF_ERROR(heal());
  applied_ = false;
  return port_.awaitWhole();
}

}  // namespace faultline::injector
