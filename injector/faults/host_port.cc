#include "injector/faults/host_port.h"

#include <fmt/format.h>

#include <algorithm>

#include "injector/netlink/counters.h"
#include "injector/netlink/interface.h"

namespace faultline::injector {
namespace {

constexpr Duration kAnswerPatience = 300ms;
constexpr Duration kReturnPatience = 2s;

}  // namespace

Status HostPort::prepare(netlink::Socket& socket, int ifindex) {
  socket_ = &socket;
  ifindex_ = ifindex;
  ASSIGN_OR_RETURN(neighbours_, safety::Neighbours::find(socket, ifindex, kAnswerPatience));
  return okStatus();
}

Status HostPort::step(TimePoint now) {
  ASSIGN_OR_RETURN(const netlink::NetDevice link, netlink::readNetDevice(*socket_, ifindex_));
  ASSIGN_OR_RETURN(const netlink::LinkCounters counters, netlink::readCounters(*socket_, ifindex_));
  seen_ = true;
  carrier_ = link.carrier;
  received_.observe(counters.rx_packets, now);
  sent_.observe(counters.tx_packets, now);
  return okStatus();
}

bool HostPort::conclusive() const {
  return seen_ && !carrier_ && std::min(received_.stillFor(), sent_.stillFor()) >= kStill;
}

Evidence HostPort::verdict() const {
  const Duration still = std::min(received_.stillFor(), sent_.stillFor());
  std::string observed = fmt::format(
      "the driver {} its carrier; the counters stood still for {:.0f} ms (at {} packets "
      "in, {} out)",
      carrier_ ? "has kept" : "has lost", toMilliseconds(still), received_.value(), sent_.value());
  return {"port_down", "carrier and counters of the interface", std::move(observed), conclusive()};
}

Result<std::string> HostPort::whatIsMissing(netlink::Socket& socket, int ifindex) {
  return neighbours_.silent(socket, ifindex, kReturnPatience);
}

}  // namespace faultline::injector
