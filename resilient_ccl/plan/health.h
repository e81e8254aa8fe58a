#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace faultline::plan {

/// Bandwidth of one rank's port, per direction, in parts of kWhole of the fastest port of the job.
/// Quantised, so that all ranks plan from the same numbers.
struct Health {
  static constexpr int kWhole = 1024;

  std::uint16_t send = kWhole;
  std::uint16_t receive = kWhole;

  bool operator==(const Health&) const = default;
};

/// One per rank.
using HealthVector = std::vector<Health>;

/// Parts as a fraction.
inline double fraction(std::uint16_t parts) { return static_cast<double>(parts) / Health::kWhole; }

/// `share` of the fastest port, rounded to parts; what lives is at least one part. `share` is
/// above 0; more than all is all.
inline std::uint16_t quantise(double share) {
  const double parts = std::round(share * Health::kWhole);
  return static_cast<std::uint16_t>(std::clamp(parts, 1.0, static_cast<double>(Health::kWhole)));
}

}  // namespace faultline::plan
