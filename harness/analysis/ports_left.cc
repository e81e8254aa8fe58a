#include "harness/analysis/ports_left.h"

#include <algorithm>
#include <vector>

namespace faultline::run {
namespace {

using schedule::PortBandwidths;

PortBandwidths leftAt(double ms, std::span<const PortLoss> losses,
                      const scenario::Cluster& cluster) {
  const std::vector<double> whole(cluster.nodes, 1.0);
  PortBandwidths left(whole);
  for (int node = 0; node < cluster.nodes; ++node) {
    double send = 0, receive = 0;
    for (int rail = 0; rail < cluster.rails; ++rail) {
      double tx = 1, rx = 1;
      for (const PortLoss& loss : losses) {
        if (loss.node != node || loss.rail != rail || ms < loss.start_ms || ms >= loss.end_ms) {
          continue;
        }
        tx = std::min(tx, 1 - loss.tx);
        rx = std::min(rx, 1 - loss.rx);
      }
      send += tx;
      receive += rx;
    }
    left.send[node] = send / cluster.rails;
    left.receive[node] = receive / cluster.rails;
  }
  return left;
}

bool equal(const PortBandwidths& a, const PortBandwidths& b) {
  return a.send == b.send && a.receive == b.receive;
}

}  // namespace

std::optional<PortBandwidths> portsLeft(double from_ms, double to_ms,
                                        std::span<const PortLoss> losses,
                                        const scenario::Cluster& cluster) {
  PortBandwidths left = leftAt(from_ms, losses, cluster);
  for (const PortLoss& loss : losses) {
    for (const double edge : {loss.start_ms, loss.end_ms}) {
      if (edge > from_ms && edge < to_ms && !equal(leftAt(edge, losses, cluster), left)) {
        return std::nullopt;
      }
    }
  }
  const bool any = std::ranges::all_of(left.send, [](double share) { return share > 0; }) &&
                   std::ranges::all_of(left.receive, [](double share) { return share > 0; });
  if (!any) return std::nullopt;
  return left;
}

}  // namespace faultline::run
