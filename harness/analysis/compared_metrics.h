#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/result.h"

namespace faultline::run {

/// The values of one metric of one strategy.
struct ComparedValues {
  /// Infinite: what it is about was never over, so that it ranks above everything that was.
  std::vector<double> values{};
  /// Runs that ended before they had done their work, and have no value.
  int lost = 0;
  /// Of infinite values of runs that did their work, the shortest time for which one was watched:
  /// whether it would have been over a little later, nobody knows.
  std::optional<double> watched_ms{};
};

/// A number that each run (or block) of a strategy has, by which two results are compared and whose
/// history is kept.
struct ComparedMetric {
  enum class Kind : std::uint8_t {
    kSpeed,    ///< sampled; means nothing on a machine that was too noisy
    kSampled,  ///< sampled
    kCounted,  ///< what never may happen: one more is worse, whatever chance says; 0 is not listed
  };
  const char* name;
  const char* unit;  ///< empty: that of the runs' throughput
  bool higher_is_better;
  Kind kind;
  /// One value per run that has it. Pure.
  ComparedValues (*values)(const reports::ScenarioResult& result, const std::string& strategy);
  const char* doc;

  bool inPoints() const { return std::string(unit) == "%"; }
};

/// All of them, the most important first.
std::span<const ComparedMetric> comparedMetrics();

/// The strategies that a result has runs of, in the order of its summary.
std::vector<std::string> measuredStrategies(const reports::ScenarioResult& result);

/// The unit of a metric's values in this result.
std::string unitOf(const ComparedMetric& metric, const reports::ScenarioResult& result);

}  // namespace faultline::run
