#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

namespace faultline::fabric {

/// Follows the address of one NIC through the events of its interface. An interface may have more
/// addresses than the one that the job uses: another one takes its place only when it has gone.
class NicAddress {
 public:
  explicit NicAddress(std::uint32_t address) : address_(address) {}

  /// The interface has got (`present`) or lost `address`: the NIC's new address, when it changes.
  std::optional<std::uint32_t> changed(std::uint32_t address, bool present) {
    if (address == address_) {
      lost_ = !present;
    } else if (present) {
      other_ = address;
    } else if (other_ == address) {
      other_.reset();
    }
    return take();
  }

  /// All addresses that the interface has now, the latest last, whatever was heard before.
  std::optional<std::uint32_t> listed(std::span<const std::uint32_t> addresses) {
    lost_ = std::ranges::find(addresses, address_) == addresses.end();
    other_.reset();
    for (const std::uint32_t address : addresses) {
      if (address != address_) other_ = address;
    }
    return take();
  }

  /// How often it has changed.
  std::uint32_t changes() const { return changes_; }

 private:
  std::optional<std::uint32_t> take() {
    if (!lost_ || !other_) return std::nullopt;
    address_ = *other_;
    other_.reset();
    lost_ = false;
    ++changes_;
    return address_;
  }

  std::uint32_t address_;
  std::optional<std::uint32_t> other_;  // the latest of the others
  bool lost_ = false;
  std::uint32_t changes_ = 0;
};

}  // namespace faultline::fabric
