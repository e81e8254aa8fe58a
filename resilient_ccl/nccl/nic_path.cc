#include "resilient_ccl/nccl/nic_path.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

#include "resilient_ccl/channel/partners.h"

namespace faultline::nccl {
namespace {

using Line = std::vector<std::string>;

/// ".../pci0000:17/0000:17:01.0/0000:18:00.0": the host bridge with what is before it, then what is
/// behind it down to the card. Empty: no such path.
Line lineOf(const std::string& pciPath) {
  Line line;
  std::string above;
  for (const auto& part : std::filesystem::path(pciPath)) {
    const std::string name = part.string();
    if (!line.empty()) {
      line.push_back(name);
    } else {
      above += "/" + name;
      if (name.starts_with("pci") && name.find(':') != std::string::npos) line.push_back(above);
    }
  }
  return line.size() > 1 ? line : Line();
}

std::size_t sharedBy(const Line& a, const Line& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::string withoutFunction(const std::string& address) {
  return address.substr(0, address.rfind('.'));
}

/// Hops up from one and down to the other.
int bridgesBetween(const Device& a, const Device& b) {
  const Line one = lineOf(a.pciPath);
  const Line other = lineOf(b.pciPath);
  return static_cast<int>(one.size() + other.size() - 2 * sharedBy(one, other));
}

}  // namespace

std::string_view nameOf(NicPath path) {
  constexpr std::array<std::string_view, 6> kNames{"card", "switch", "root",
                                                   "numa", "socket", "unknown"};
  return kNames[static_cast<std::size_t>(path)];
}

NicPath pathBetween(const Device& a, const Device& b) {
  const Line one = lineOf(a.pciPath);
  const Line other = lineOf(b.pciPath);
  if (one.empty() || other.empty()) return NicPath::kUnknown;
  const std::size_t shared = sharedBy(one, other);
  if (one == other) return NicPath::kCard;  // a card whose function has several ports
  if (shared + 1 == one.size() && one.size() == other.size() &&
      withoutFunction(one.back()) == withoutFunction(other.back())) {
    return NicPath::kCard;
  }
  if (shared > 1) return NicPath::kSwitch;
  if (shared == 1) return NicPath::kRoot;
  if (a.numaNode < 0 || b.numaNode < 0) return NicPath::kUnknown;
  return a.numaNode == b.numaNode ? NicPath::kNuma : NicPath::kSocket;
}

std::vector<std::vector<int>> partnersOf(const std::vector<Device>& devices) {
  constexpr int kFurther = 1000;  // more than there are bridges
  std::vector<std::vector<int>> distance;
  for (const Device& from : devices) {
    std::vector<int>& row = distance.emplace_back();
    for (const Device& to : devices) {
      row.push_back(static_cast<int>(pathBetween(from, to)) * kFurther + bridgesBetween(from, to));
    }
  }
  return channel::partnersByDistance(distance);
}

}  // namespace faultline::nccl
