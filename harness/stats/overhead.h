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

/// What percents of blocks come to. Equal seeds give equal intervals.
Overhead overheadOf(std::vector<double> percents, std::uint64_t seed);

/// Overhead in percent, computed per block and only then condensed, so that slow drifts of the
/// machine cancel. Blocks without an overhead are left out.
Overhead overhead(std::span<const Block> blocks, std::uint64_t seed);

/// One interleaved block of many times each: of requests of the reference run and of the run under
/// test, in the same unit.
struct SampleBlock {
  std::vector<double> reference;
  std::vector<double> measured;
};

/// What a 95th percentile is longer by.
struct TailOverhead {
  std::size_t n = 0;                   ///< samples of the side that has fewer
  double percent = 0;                  ///< p95 of all measured over p95 of all reference, less 1
  std::optional<Interval> interval95;  ///< absent below kMinBlocksForInterval blocks
};

/// Of the samples of all blocks together, since one block has too few for a p95; the interval by
/// drawing whole blocks (cluster bootstrap: Davison and Hinkley 1997, section 3.8), because samples
/// of a run are not independent. Blocks without samples on a side are left out. nullopt below
/// kMinSamplesForP95 samples on a side or where the reference is not positive. Equal seeds give
/// equal intervals.
std::optional<TailOverhead> p95Overhead(std::span<const SampleBlock> blocks, std::uint64_t seed);

/// Pairs below which an A/A band is not given.
inline constexpr std::size_t kMinPairsForBand = 10;
/// Above this band the machine is too noisy: the run is void.
inline constexpr double kMaxBandPercent = 2;

/// The same of median latencies of a server, of few requests each: a median over ten blocks then
/// shows about a third of it (1 / sqrt(10)), which are the 3 % that are published for one lost NIC.
inline constexpr double kMaxLatencyBandPercent = 10;

/// What two runs of the same thing differ by on this machine at this time.
struct NoiseBand {
  double percent = 0;  ///< 95 % of the pairs differ by at most this much
  /// Their median differs from 0 by at most this much: the farther end of its 95 % interval. A
  /// median over as many blocks that is nearer to 0 shows nothing.
  double medianPercent = 0;
  bool isVoid(double limit = kMaxBandPercent) const { return percent > limit; }
};

/// Band of A/A pairs: the 95 % quantile of |v0/v - 1|, and the interval of its median. nullopt
/// below kMinPairsForBand usable pairs. Equal seeds give equal bands.
std::optional<NoiseBand> noiseBand(std::span<const Block> pairs, std::uint64_t seed);

/// The same of what equal runs differ by in percent, however that is reckoned.
std::optional<NoiseBand> noiseBand(const Overhead& difference);

/// Whether an overhead is more than noise: its median is outside the band of equal runs, and its
/// interval has no 0 in it.
bool distinguishable(double median, const Interval& interval95, const NoiseBand& band);

/// What an overhead is at most: the upper end of its 95 % interval, and never less than the band,
/// because nothing smaller can be seen.
double atMost(const Interval& interval95, const NoiseBand& band);

}  // namespace faultline::stats
