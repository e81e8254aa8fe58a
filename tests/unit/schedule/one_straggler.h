#pragma once

#include <cstddef>
#include <vector>

namespace faultline::schedule {

/// Bandwidths of ranks that are whole, but for rank 1 (0 where there is no other), which has the
/// share `r`.
inline std::vector<double> oneStraggler(int ranks, double r) {
  std::vector<double> bandwidths(static_cast<std::size_t>(ranks), 1.0);
  bandwidths[1 % bandwidths.size()] = r;
  return bandwidths;
}

}  // namespace faultline::schedule
