#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/units.h"

namespace faultline::model {

/// What one rank computes on.
struct DeviceCard {
  std::string name;         ///< of a preset; "custom" otherwise
  std::int64_t gflops = 1;  ///< 10^9 floating-point operations per second, at its peak
  double efficiency = 1;    ///< share of the peak that training reaches, above 0, at most 1
  Bytes memory = 0;
  Bytes memoryBandwidth = 0;  ///< bytes that it reads from there in a second; 0: not known
  bool operator==(const DeviceCard&) const = default;

  double flopsPerSecond() const { return static_cast<double>(gflops) * 1e9 * efficiency; }
};

/// Public data sheets, each with its source in device_card.cc.
std::span<const DeviceCard> devices();
std::span<const std::string_view> deviceNames();
/// Null when there is none of that name.
const DeviceCard* findDevice(std::string_view name);

}  // namespace faultline::model
