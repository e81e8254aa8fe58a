#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/stats/bootstrap.h"

namespace faultline::stats {

/// One interleaved block: throughputs of the reference run and of the run under test, in any unit
/// of work per time, but the same one.
struct Block {
  double reference = 0;  ///< v0, fault-free
  double measured = 0;   ///< v
};

/// (v0 / v - 1) * 100: extra time per unit of work, in percent; negative when the run was faster.
/// nullopt unless both are positive and finite: a run that did nothing has no overhead.
std::optional<double> overheadPercent(const Block& block);

struct Overhead {
  std::size_t n = 0;  ///< blocks that count
  std::optional<double> median;
  std::optional<Interval> interval95;  ///< absent below kMinBlocksForInterval blocks
  std::vector<double> perBlock;
};

/// Overhead in percent, computed per block and only then condensed, so that slow drifts of the
/// machine cancel. Blocks without an overhead are left out.
Overhead overhead(std::span<const Block> blocks, std::uint64_t seed);

/// Pairs below which an A/A band is not given.
inline constexpr std::size_t kMinPairsForBand = 10;
/// Above this band the machine is too noisy: the run is void.
inline constexpr double kMaxBandPercent = 2;

/// What two runs of the same thing differ by on this machine at this time.
struct NoiseBand {
  double percent = 0;  ///< 95 % of the pairs differ by at most this much
  bool isVoid() const { return percent > kMaxBandPercent; }
};

/// Band of A/A pairs: the 95 % quantile of |v0/v - 1|. nullopt below kMinPairsForBand usable pairs.
std::optional<NoiseBand> noiseBand(std::span<const Block> pairs);

}  // namespace faultline::stats
