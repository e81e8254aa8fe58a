#include "harness/model/device_card.h"

#include <algorithm>
#include <array>

namespace faultline::model {
namespace {

constexpr Bytes kGigabyte = 1'000'000'000;

/// Peaks are those of dense 16-bit products in NVIDIA's data sheets (V100, A100, H100 and H200, all
/// SXM), as are sizes and bandwidths of memory (of the A100 that with 80 GB). The share of them
/// that training reaches is a round number from published runs: Narayanan et al. 2021, table 1,
/// have 44 to 52 % on A100, and Grattafiori et al. 2024, table 4, 38 to 43 % on H100; both include
/// some communication. V100 and H200 are taken like their neighbours.
const std::array<DeviceCard, 4>& deviceCards() {
  static const std::array<DeviceCard, 4> kCards{
      DeviceCard{"v100", 125'000, 0.5, 32 * kGigabyte, 900 * kGigabyte},
      DeviceCard{"a100", 312'000, 0.5, 80 * kGigabyte, 2'039 * kGigabyte},
      DeviceCard{"h100", 989'000, 0.4, 80 * kGigabyte, 3'350 * kGigabyte},
      DeviceCard{"h200", 989'000, 0.4, 141 * kGigabyte, 4'800 * kGigabyte},
  };
  return kCards;
}

}  // namespace

std::span<const DeviceCard> devices() { return deviceCards(); }

std::span<const std::string_view> deviceNames() {
  static const std::array<std::string_view, 4> kNames = [] {
    std::array<std::string_view, 4> names;
    std::ranges::transform(deviceCards(), names.begin(), &DeviceCard::name);
    return names;
  }();
  return kNames;
}

const DeviceCard* findDevice(std::string_view name) {
  const auto found = std::ranges::find(deviceCards(), name, &DeviceCard::name);
  return found == deviceCards().end() ? nullptr : &*found;
}

}  // namespace faultline::model
