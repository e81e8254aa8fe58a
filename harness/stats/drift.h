#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace faultline::stats {

/// A machine that changed by more than this while it was measured became another one. Blocks cancel
/// what is less, and slow.
inline constexpr double kMaxDriftPercent = 5;

/// Values below which a series has no drift: three in each third.
inline constexpr std::size_t kMinValuesForDrift = 9;

/// How much more time a unit of work took at the end than at the beginning, of equal runs.
struct Drift {
  double percent = 0;       ///< median of the throughputs before over that of those after, less 1
  std::optional<double> p;  ///< of Mann and Whitney's test; from kMinValuesToCompare on each side
  /// The largest difference of two runs on the same side: the fastest over the slowest, less 1.
  /// nullopt with only one on each side.
  std::optional<double> spreadPercent;
};

/// Throughputs of runs before and after everything else. nullopt where one side has none, or one is
/// not positive and finite.
std::optional<Drift> drift(std::span<const double> before, std::span<const double> after);

/// The same of a series in the order of time: the first third of it and the last. nullopt below
/// kMinValuesForDrift.
std::optional<double> driftPercent(std::span<const double> throughputs);

}  // namespace faultline::stats
