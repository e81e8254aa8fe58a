#include "harness/inference/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace faultline::inference {
namespace {

using ::testing::HasSubstr;

constexpr Lengths kFixed{.spread = Spread::kFixed, .mean = 100, .cv = 0.5};

double meanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviationOf(const std::vector<double>& values) {
  const double mean = meanOf(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(PoissonArrivalsTest, TimesBetweenThemAreExponential) {
  constexpr int kCount = 20'000;
  const Arrivals arrivals = poissonArrivals(4, kCount, kFixed, kFixed, 0, 7);
  std::vector<double> gaps;
  double before = 0;
  int longerThanMean = 0;
  for (const Request& request : arrivals.requests) {
    gaps.push_back(request.arrival - before);
    before = request.arrival;
    longerThanMean += gaps.back() > 0.25;
  }
  // Of an exponential distribution mean and deviation are equal, and 1 / e are above the mean. The
  // bounds are five standard errors.
  const double error = 0.25 / std::sqrt(kCount);
  EXPECT_NEAR(meanOf(gaps), 0.25, 5 * error);
  EXPECT_NEAR(deviationOf(gaps), 0.25, 5 * error * std::sqrt(2));
  EXPECT_NEAR(longerThanMean / double{kCount}, std::exp(-1), 5 * 0.49 / std::sqrt(kCount));
}

TEST(PoissonArrivalsTest, FollowFromTheSeed) {
  const Lengths spread{.spread = Spread::kLognormal, .mean = 100, .cv = 1};
  const Arrivals once = poissonArrivals(4, 50, spread, spread, 100, 7);
  EXPECT_EQ(once, poissonArrivals(4, 50, spread, spread, 100, 7));
  EXPECT_NE(once, poissonArrivals(4, 50, spread, spread, 100, 8));
  EXPECT_EQ(once.requests.front().id, 100);
  EXPECT_EQ(once.requests.back().id, 149);
  // Rows of a report with other lengths have the same arrivals.
  const Arrivals other = poissonArrivals(4, 50, kFixed, spread, 100, 7);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(once.requests[i].arrival, other.requests[i].arrival);
    EXPECT_EQ(once.requests[i].output, other.requests[i].output);
  }
}

TEST(LengthsTest, HaveTheirMeanAndSpread) {
  constexpr int kDraws = 20'000;
  const auto draws = [](const Lengths& lengths) {
    Random random(3);
    std::vector<double> values;
    for (int i = 0; i < kDraws; ++i) values.push_back(lengths.draw(random));
    return values;
  };
  EXPECT_EQ(deviationOf(draws(kFixed)), 0);
  EXPECT_EQ(meanOf(draws(kFixed)), 100);
  const std::vector<double> uniform = draws({.spread = Spread::kUniform, .mean = 100, .cv = 0.5});
  EXPECT_NEAR(meanOf(uniform), 100, 1);
  EXPECT_NEAR(deviationOf(uniform), 100 / std::sqrt(12), 1);
  EXPECT_EQ(*std::ranges::max_element(uniform), 150);
  const std::vector<double> lognormal =
      draws({.spread = Spread::kLognormal, .mean = 100, .cv = 0.5});
  EXPECT_NEAR(meanOf(lognormal), 100, 2);
  EXPECT_NEAR(deviationOf(lognormal), 50, 3);
}

TEST(LengthsTest, AreCut) {
  const Lengths wild{.spread = Spread::kLognormal, .mean = 10, .cv = 5};
  Random random(3);
  int longest = 0;
  for (int i = 0; i < 10'000; ++i) {
    const int length = wild.draw(random);
    EXPECT_GE(length, 1);
    longest = std::max(longest, length);
  }
  EXPECT_EQ(longest, wild.longest());
}

}  // namespace
}  // namespace faultline::inference
