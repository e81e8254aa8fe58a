#pragma once

#include <cstdint>
#include <vector>

#include "resilient_ccl/schedule/bound.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// A buffer divided among ranks by integer weights. All arithmetic is exact, so that every rank
/// computes the same boundaries whatever its compiler and processor.
class Shares {
 public:
  /// So that the products of two sums of weights fit into 64 bits.
  static constexpr std::int64_t kMaxTotal = std::int64_t{1} << 30;

  /// Weights >= 0, their sum in (0, kMaxTotal]. Only their ratios matter.
  explicit Shares(const std::vector<std::int64_t>& weights);

  int count() const { return static_cast<int>(prefix_.size()) - 1; }
  std::int64_t weight(int index) const { return prefix_[slot(index) + 1] - prefix_[slot(index)]; }
  std::int64_t total() const { return prefix_.back(); }

  /// The part of `whole` that belongs to `index`; boundaries lie at the prefix sums of the weights,
  /// rounded to the nearest element. A rank without weight has no elements.
  Piece piece(Piece whole, int index) const;

 private:
  static std::size_t slot(int index) { return static_cast<std::size_t>(index); }

  std::vector<std::int64_t> prefix_;  ///< sums of the weights before each rank, and the total
};

/// Bandwidths are counted in 1/1024 of a healthy port when shares are made of them.
inline constexpr std::int64_t kBandwidthSteps = 1024;
/// A bandwidth in (0, 1] in such steps, at least one.
std::int64_t bandwidthSteps(double bandwidth);

/// How much of the buffer each rank should reduce for the others in a schedule in which an owner
/// of the share w sends and receives S(1 + (p-2)w): equal shares where all bandwidths are equal,
/// nothing for the slowest when it can hardly carry its own data.
///
/// kFluid: w ~ max(0, b T - 1), T = the lower bound: all ports are busy for T (facts of the bound:
/// `lowerBound`). kOnePort: w ~ max(0, 2b - 1) (all macro steps of schedule D last the same;
/// OptCC). b is the slower direction of a rank. Empty bandwidths: all equal.
Shares ownerShares(int ranks, const PortBandwidths& bandwidths, PortModel model);

}  // namespace faultline::schedule
