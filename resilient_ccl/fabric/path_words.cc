#include "resilient_ccl/fabric/path_words.h"

#include <fmt/format.h>

#include <chrono>
#include <string_view>

#include "base/units.h"

namespace faultline::fabric {
namespace {

std::string_view directionOf(channel::DeadDirection direction) {
  switch (direction) {
    case channel::DeadDirection::kOutgoing:
      return "; nothing that this end sends arrives";
    case channel::DeadDirection::kIncoming:
      return "; nothing that the other end sends arrives";
    case channel::DeadDirection::kBoth:
      return "; neither end hears the other";
    case channel::DeadDirection::kUnknown:
      break;
  }
  return "";
}

}  // namespace

std::string wordsOf(const PathEnds& ends, const channel::PathProved& proved) {
  if (proved.passes) return fmt::format("{} carries datagrams now", ends.path);
  const bool rail = !ends.device.empty();
  const std::string from = transport::tcp::formatAddress(ends.from),
                    to = transport::tcp::formatAddress(ends.to.address);
  const std::string where = fmt::format(
      "Look for a firewall that drops UDP, at the route (ip route get {} from {}{}) and at "
      "net.ipv4.conf.{}.rp_filter, on both nodes",
      to, from, rail ? fmt::format(" oif {}", ends.device) : "", rail ? ends.device : "all");
  return fmt::format(
      "{} carries no datagrams: {} probes within {} from {}{} to {} (UDP) had no answer{}{}; {}. "
      "{}",
      ends.path, proved.rounds,
      formatDuration(std::chrono::round<std::chrono::milliseconds>(proved.within)), from,
      rail ? fmt::format(" ({})", ends.device) : "", ends.to.toString(),
      proved.othersAnswer ? ", those over other paths had" : "", directionOf(proved.direction),
      rail
          ? "it is connected by TCP and goes on carrying payload, but its failures are noticed late"
          : "when no rail is left, nobody hears whether the other end lives",
      ends.noRoute.empty() ? where : "The cause: " + ends.noRoute);
}

}  // namespace faultline::fabric
