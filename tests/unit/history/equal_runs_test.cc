#include "harness/history/equal_runs.h"

#include <gtest/gtest.h>

namespace faultline::history {
namespace {

TEST(EqualRunsTest, DifferByTheNoiseRowsBandOrByWhatTheDriftCheckSaw) {
  reports::ScenarioResult result;
  EXPECT_EQ(equalRunsPercent(result), 0) << "nobody looked";
  result.drift.emplace();
  EXPECT_EQ(equalRunsPercent(result), 0) << "no run had a speed";
  result.drift->drift_pct = -1.5;
  EXPECT_EQ(equalRunsPercent(result), 1.5) << "one run on each side";
  result.drift->spread_pct = 3.5;
  EXPECT_EQ(equalRunsPercent(result), 3.5);
  result.drift->drift_pct = 4.5;
  EXPECT_EQ(equalRunsPercent(result), 4.5);
  result.noise.emplace();
  result.noise->band_pct = 2;
  result.noise->median_band_pct = 0.5;
  EXPECT_EQ(equalRunsPercent(result), 0.5) << "pairs beside each other know it better";
}

}  // namespace
}  // namespace faultline::history
