#include "resilient_ccl/nccl/rail_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::nccl {
namespace {

/// Whether the rail's own network has the address. A link of two ends (/31, RFC 3021) has no third.
bool isBeside(const RailSubnet& rail, std::uint32_t address) {
  constexpr int kAddressBits = 32, kTwoEnds = 31;
  if (rail.prefix <= 0 || rail.prefix >= kTwoEnds || rail.address == 0) return false;
  return (rail.address ^ address) >> (kAddressBits - rail.prefix) == 0;
}

}  // namespace

std::string crossedRails(const std::vector<RailSubnet>& rails,
                         const std::vector<std::uint32_t>& addresses) {
  std::vector<std::string> crossed;
  for (std::size_t rail = 0; rail < std::min(rails.size(), addresses.size()); ++rail) {
    if (isBeside(rails[rail], addresses[rail])) continue;
    const auto beside = std::ranges::find_if(
        rails, [&](const RailSubnet& one) { return isBeside(one, addresses[rail]); });
    if (beside == rails.end()) continue;
    crossed.push_back(fmt::format("its rail {} ({}) is in the subnet of this node's {}", rail,
                                  transport::tcp::formatAddress(addresses[rail]), beside->name));
  }
  if (crossed.empty()) return "";
  return fmt::format(
      "{}: rails of one number belong to one network. Name the interfaces in the same order in "
      "FAULTLINE_NICS on all nodes",
      fmt::join(crossed, ", "));
}

}  // namespace faultline::nccl
