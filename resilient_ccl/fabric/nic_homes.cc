#include "resilient_ccl/fabric/nic_homes.h"

#include <algorithm>

namespace faultline::fabric {
namespace {

/// What stays the same of a link-layer address: of IPoIB's 20 bytes the port's GUID, the last 8.
std::string identityOf(const std::string& mac) {
  constexpr std::size_t kInfinibandBytes = 20, kGuidBytes = 8;
  const bool none = std::ranges::all_of(mac, [](char byte) { return byte == 0; });
  if (none) return {};
  return mac.size() == kInfinibandBytes ? mac.substr(mac.size() - kGuidBytes) : mac;
}

}  // namespace

void NicHomes::add(const std::string& device, std::uint32_t address, int index) {
  rails_.push_back({.device = device,
                    .mac = {},
                    .address = address,
                    .index = index,
                    .fixed = device.empty(),
                    .follows = NicAddress(address)});
}

bool NicHomes::isHome(int index) const {
  return std::ranges::any_of(rails_, [&](const Rail& rail) { return rail.index == index; });
}

NicHomes::Changes NicHomes::port(const Port& port) {
  Changes changes;
  if (port.present) {
    known_[port.index].port = port;
  } else {
    known_.erase(port.index);
  }
  for (std::size_t number = 0; number < rails_.size(); ++number) {
    Rail& rail = rails_[number];
    if (rail.index == 0 || rail.index != port.index) continue;
    if (!port.present) {
      rail.index = 0;
      changes.push_back({number, Change::Kind::kGone});
      continue;
    }
    if (rail.mac.empty()) rail.mac = identityOf(port.mac);
    if (rail.device != port.name) {
      rail.device = port.name;
      changes.push_back({number, Change::Kind::kRenamed});
    }
    changes.push_back({number, Change::Kind::kPort, port.usable});
  }
  rehouse(changes);
  return changes;
}

NicHomes::Changes NicHomes::ports(const std::set<int>& indices) {
  std::vector<int> gone;
  for (const auto& [index, known] : known_) {
    if (!indices.contains(index)) gone.push_back(index);
  }
  for (const Rail& rail : rails_) {
    if (rail.index != 0 && !indices.contains(rail.index)) gone.push_back(rail.index);
  }
  Changes changes;
  for (const int index : gone) {
    const Changes more = port({.index = index, .name = {}, .mac = {}, .present = false});
    changes.insert(changes.end(), more.begin(), more.end());
  }
  return changes;
}

NicHomes::Changes NicHomes::address(int index, std::uint32_t address, bool present) {
  Changes changes;
  // Of an interface that is gone nothing is kept.
  if (present || known_.contains(index)) {
    std::vector<std::uint32_t>& its = known_[index].addresses;
    std::erase(its, address);
    if (present) its.push_back(address);
  }
  for (std::size_t number = 0; number < rails_.size(); ++number) {
    Rail& rail = rails_[number];
    if (rail.fixed || rail.index == 0 || rail.index != index) continue;
    if (const auto changed = rail.follows.changed(address, present)) {
      rail.address = *changed;
      changes.push_back({number, Change::Kind::kAddress});
    }
  }
  rehouse(changes);
  return changes;
}

NicHomes::Changes NicHomes::addresses(const Addresses& all) {
  Changes changes;
  for (auto& [index, known] : known_) known.addresses.clear();
  for (const auto& [index, address] : all) known_[index].addresses.push_back(address);
  listed_ = true;
  for (std::size_t number = 0; number < rails_.size(); ++number) {
    Rail& rail = rails_[number];
    if (rail.fixed || rail.index == 0) continue;
    if (const auto changed = rail.follows.listed(known_[rail.index].addresses)) {
      rail.address = *changed;
      changes.push_back({number, Change::Kind::kAddress});
    }
  }
  rehouse(changes);
  return changes;
}

/// The interface that the rail is to move to; 0: none.
int NicHomes::candidate(const Rail& rail) const {
  int other = 0;
  for (const auto& [index, known] : known_) {
    // Of what has an address but has not been told of, nothing is known yet.
    if (isHome(index) || known.port.index == 0 || known.addresses.empty()) continue;
    if (std::ranges::find(known.addresses, rail.address) != known.addresses.end()) return index;
    // Names change places when drivers come up in another order: the address says whose it is.
    const bool ofAnother = std::ranges::any_of(rails_, [&known = known](const Rail& one) {
      return std::ranges::find(known.addresses, one.address) != known.addresses.end();
    });
    if (ofAnother) continue;
    const bool same = !rail.mac.empty() && identityOf(known.port.mac) == rail.mac;
    if (rail.index == 0 && (same || (other == 0 && known.port.name == rail.device))) other = index;
  }
  return other;
}

void NicHomes::rehouse(Changes& changes) {
  if (!listed_) return;
  for (std::size_t number = 0; number < rails_.size(); ++number) {
    const Rail& rail = rails_[number];
    if (rail.fixed) continue;
    if (rail.index != 0) {
      const std::vector<std::uint32_t>& its = known_[rail.index].addresses;
      if (std::ranges::find(its, rail.address) != its.end()) continue;
    }
    if (const int index = candidate(rail); index != 0) moveTo(number, index, changes);
  }
}

void NicHomes::moveTo(std::size_t number, int index, Changes& changes) {
  Rail& rail = rails_[number];
  const Known& known = known_.at(index);
  rail.index = index;
  rail.device = known.port.name;
  rail.mac = identityOf(known.port.mac);
  if (const auto changed = rail.follows.listed(known.addresses)) {
    rail.address = *changed;
    changes.push_back({number, Change::Kind::kAddress});
  }
  changes.push_back({number, Change::Kind::kMoved, known.port.usable});
}

}  // namespace faultline::fabric
