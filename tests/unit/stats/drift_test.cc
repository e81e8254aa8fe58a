#include "harness/stats/drift.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace faultline::stats {
namespace {

using Values = std::vector<double>;

TEST(DriftTest, IsTheEndAgainstTheBeginning) {
  EXPECT_FALSE(driftPercent(std::vector<double>(8, 1)));
  EXPECT_EQ(driftPercent(std::vector<double>(9, 1)), 0);
  // The middle third and single outliers do not count; half the speed is twice the time.
  EXPECT_NEAR(*driftPercent(std::vector<double>{10, 10, 90, 1, 1, 1, 5, 5, 50}), 100, 1e-9);
  EXPECT_NEAR(*driftPercent(std::vector<double>{5, 5, 5, 1, 1, 1, 10, 10, 10}), -50, 1e-9);
  EXPECT_FALSE(driftPercent(std::vector<double>(9, 0)));
}

TEST(DriftTest, ComparesTheMediansOfBothSides) {
  // Medians 100 and 80: a unit of work takes a quarter more time; on each side the fastest is 4 %
  // and 12.5 % above the slowest.
  const auto found = drift(Values{100, 104, 100}, Values{80, 90, 80});
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->percent, 25, 1e-9);
  EXPECT_NEAR(*found->spreadPercent, 12.5, 1e-9);
  EXPECT_FALSE(found->p) << "three on a side cannot be told from chance";
  EXPECT_NEAR(drift(Values{80}, Values{100})->percent, -20, 1e-9);
  EXPECT_FALSE(drift(Values{80}, Values{100})->spreadPercent);
}

TEST(DriftTest, FromFiveOnEachSideItSaysHowProbableThatIs) {
  // All of one side above all of the other: 2 of the 252 orders.
  const auto apart = drift(Values{11, 12, 13, 14, 15}, Values{6, 7, 8, 9, 10});
  EXPECT_NEAR(*apart->p, 2.0 / 252, 1e-9);
  EXPECT_FALSE(drift(Values{11, 12, 13, 14}, Values{6, 7, 8, 9, 10})->p);
}

TEST(DriftTest, NeedsAUsableSpeedOnBothSides) {
  EXPECT_FALSE(drift(Values{}, Values{1}));
  EXPECT_FALSE(drift(Values{1}, Values{}));
  EXPECT_FALSE(drift(Values{1, 0}, Values{1}));
  EXPECT_FALSE(drift(Values{1}, Values{std::numeric_limits<double>::quiet_NaN()}));
}

}  // namespace
}  // namespace faultline::stats
