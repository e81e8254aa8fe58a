#include "injector/faults/port_down.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "injector/netlink/counters.h"

namespace faultline::injector {
PortDown::PortDown(const FaultParameters& parameters, const netlink::LinkTarget& target)
    : port_(target, parameters.get<std::string>("how")) {}

PortDown::~PortDown() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("port_down: {}", status.message());
}

Status PortDown::prepare() { return port_.prepare(); }

Status PortDown::apply() {
  applied_ = true;  // before the call: if it fails half-way, revert() has something to do
  carrier_ = true;
  received_ = sent_ = {};
  return transit(true, [&] { return port_.down(); });
}

Status PortDown::step(TimePoint now) {
  if (conclusive()) return okStatus();
  const netlink::LinkEnd& end = port_.otherEnd();
  ASSIGN_OR_RETURN(const netlink::Link link, netlink::readLink(*end.socket, end.ifindex));
  ASSIGN_OR_RETURN(const netlink::LinkCounters counters,
                   netlink::readCounters(*end.socket, end.ifindex));
  carrier_ = link.carrier;
  received_.observe(counters.rx_packets, now);
  sent_.observe(counters.tx_packets, now);
  return okStatus();
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

Status PortDown::revert() {
  if (!applied_) return okStatus();
  RETURN_IF_ERROR(transit(false, [&] { return port_.up(); }));
  applied_ = false;
  return port_.awaitWhole();
}

}  // namespace faultline::injector
