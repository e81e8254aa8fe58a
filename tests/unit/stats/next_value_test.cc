#include "harness/stats/next_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace faultline::stats {
namespace {

using Values = std::vector<double>;

/// How much of Student's distribution is farther from 0 than `t`, by Simpson's rule.
double outside(double t, double degrees) {
  constexpr int kSteps = 1000;
  const double step = t / kSteps;
  const auto density = [&](double x) { return std::pow(1 + x * x / degrees, -(degrees + 1) / 2); };
  double sum = density(0) + density(t);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4 : 2) * density(i * step);
  const double scale = std::exp(std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2)) /
                       std::sqrt(degrees * std::acos(-1.0));
  return 1 - 2 * scale * sum * step / 3;
}

TEST(NextValueTest, IsWithinTheIntervalInNinetyNineOfAHundredCases) {
  for (int n = 3; n <= 31; ++n) {
    Values values;
    for (int i = 0; i < n; ++i) values.push_back(i % 3);
    double mean = 0;
    for (const double value : values) mean += value / n;
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    const auto interval = nextValueInterval99(values);
    ASSERT_TRUE(interval) << n;
    EXPECT_NEAR((interval->low + interval->high) / 2, mean, 1e-9) << n;
    const double reach = (interval->high - interval->low) / 2;
    const double t = reach / std::sqrt(squares / (n - 1) * (1 + 1.0 / n));
    EXPECT_NEAR(outside(t, n - 1), 0.01, 2e-5) << n;  // t has three digits behind the point
  }
}

TEST(NextValueTest, OfThreeIsFarFromThem) {
  // Mean 2, deviation 1: 9.925 sqrt(4/3).
  const auto interval = nextValueInterval99(Values{1, 2, 3});
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, 2 - 11.46, 0.001);
  EXPECT_NEAR(interval->high, 2 + 11.46, 0.001);
  const auto equal = nextValueInterval99(Values{5, 5, 5});
  ASSERT_TRUE(equal);
  EXPECT_EQ(equal->low, 5);
  EXPECT_EQ(equal->high, 5);
}

TEST(NextValueTest, OfManyIsNeverTooNarrow) {
  Values values;
  for (int i = 0; i < 500; ++i) values.push_back(i % 2 == 0 ? -1 : 1);
  const auto interval = nextValueInterval99(values);
  ASSERT_TRUE(interval);
  EXPECT_GT(interval->high, 2.576);
  EXPECT_LT(interval->high, 2.8);
}

TEST(NextValueTest, OfTooFewOrOfWhatIsNoNumberThereIsNone) {
  EXPECT_FALSE(nextValueInterval99(Values{}));
  EXPECT_FALSE(nextValueInterval99(Values{1, 2}));
  EXPECT_FALSE(nextValueInterval99(Values{1, 2, std::numeric_limits<double>::infinity()}));
  EXPECT_FALSE(nextValueInterval99(Values{1, 2, std::numeric_limits<double>::quiet_NaN()}));
}

}  // namespace
}  // namespace faultline::stats
