#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "harness/stats/bootstrap.h"
#include "harness/stats/overhead.h"
#include "harness/stats/quantile.h"

namespace faultline::stats {
namespace {

std::vector<double> count(std::size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(QuantileTest, KnownValues) {
  const std::vector<double> values{15, 20, 35, 40, 50};
  EXPECT_EQ(median(values), 35);
  EXPECT_EQ(quantile(values, 0), 15);
  EXPECT_EQ(quantile(values, 1), 50);
  EXPECT_NEAR(*quantile(values, 0.4), 29, 1e-12);  // numpy.percentile(values, 40)
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(std::vector<double>{7}), 7);
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(median(std::vector<double>{kInfinite, kInfinite}), kInfinite);
  EXPECT_EQ(median(std::vector<double>{1, 2, kInfinite, kInfinite}), kInfinite);
}

TEST(QuantileTest, NothingAndNanGiveNothing) {
  EXPECT_EQ(median({}), std::nullopt);
  EXPECT_EQ(median(std::vector<double>{1, NAN, 2}), std::nullopt);
}

TEST(QuantileTest, InfiniteValuesAreOrderedLikeOthers) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(median(std::vector<double>{1, infinity, 2}), 2);
}

TEST(DistributionTest, TailsNeedSamples) {
  EXPECT_EQ(describe({}).p50, std::nullopt);
  EXPECT_EQ(describe({}).max, std::nullopt);
  EXPECT_EQ(describe(count(59)).p95, std::nullopt);
  EXPECT_EQ(describe(count(59)).max, 59);
  EXPECT_TRUE(describe(count(60)).p95);
  EXPECT_EQ(describe(count(299)).p99, std::nullopt);
  EXPECT_NEAR(*describe(count(301)).p99, 298, 1e-9);
  EXPECT_NEAR(*describe(count(301)).p95, 286, 1e-9);
  EXPECT_EQ(describe(count(301)).n, 301u);
}

TEST(BootstrapTest, NeedsSixBlocks) {
  EXPECT_EQ(medianInterval95(count(5), 1), std::nullopt);
  EXPECT_TRUE(medianInterval95(count(6), 1));
}

TEST(BootstrapTest, IsRepeatableAndHoldsTheMedian) {
  const auto values = count(25);
  const auto first = medianInterval95(values, 7);
  const auto second = medianInterval95(values, 7);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->low, second->low);
  EXPECT_EQ(first->high, second->high);
  // For n = 25, 3 % of the medians of resamples are the 8th value or less, 7 % the 9th, 1 % the
  // 7th: an interval of 90 % would begin at the 9th, and one of 99 % at the 7th.
  EXPECT_GE(first->low, 8);
  EXPECT_LT(first->low, 9);
  EXPECT_GT(first->high, 17);
  EXPECT_LE(first->high, 18);
}

TEST(BootstrapTest, EqualValuesHaveAnIntervalWithoutWidth) {
  const auto interval = medianInterval95(std::vector<double>(8, 3.5), 1);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->low, 3.5);
  EXPECT_EQ(interval->high, 3.5);
}

TEST(OverheadTest, IsExtraTimePerUnitOfWork) {
  EXPECT_NEAR(*overheadPercent({.reference = 100, .measured = 50}), 100, 1e-12);
  EXPECT_NEAR(*overheadPercent({.reference = 100, .measured = 100}), 0, 1e-12);
  EXPECT_NEAR(*overheadPercent({.reference = 100, .measured = 125}), -20, 1e-12);
  EXPECT_EQ(overheadPercent({.reference = 100, .measured = 0}), std::nullopt);
  EXPECT_EQ(overheadPercent({.reference = NAN, .measured = 1}), std::nullopt);
}

TEST(OverheadTest, IsComputedPerBlockBeforeTheMedian) {
  // The machine halves its speed from block to block; each block's overhead is 10, 20 or 30 %.
  const std::vector<Block> blocks{{110, 100}, {60, 50}, {32.5, 25}, {1, 0}};
  const Overhead result = overhead(blocks, 1);
  EXPECT_EQ(result.n, 3u);
  EXPECT_NEAR(*result.median, 20, 1e-9);
  EXPECT_FALSE(result.interval95);
  EXPECT_EQ(overhead({}, 1).median, std::nullopt);
}

TEST(OverheadTest, SixBlocksHaveAnInterval) {
  std::vector<Block> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back({100.0 + i, 100});
  const Overhead result = overhead(blocks, 1);
  ASSERT_TRUE(result.interval95);
  EXPECT_GE(result.interval95->low, 0);
  EXPECT_LE(result.interval95->high, 5.0 + 1e-9);
  EXPECT_LT(result.interval95->low, result.interval95->high);
}

TEST(TailOverheadTest, IsThatOfAllSamplesTogether) {
  // 1 to 60 and ten more on each: the p95 of 60 values is 0.05 of the way from the 57th to the
  // 58th.
  SampleBlock block{.reference = count(60), .measured = {}};
  for (const double value : block.reference) block.measured.push_back(value + 10);
  const auto one = p95Overhead(std::vector{block}, 1);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->n, 60u);
  EXPECT_NEAR(one->percent, 100 * 10 / 57.05, 1e-9);
  EXPECT_FALSE(one->interval95) << "of one block";
  block.reference.pop_back();
  EXPECT_FALSE(p95Overhead(std::vector{block}, 1)) << "59 on a side";
}

TEST(TailOverheadTest, ItsIntervalIsOfWholeBlocks) {
  // One of six blocks is ten times as slow: a third of the draws ((5/6)^6) do not have it, and one
  // in sixteen has it three times or more.
  std::vector<SampleBlock> blocks(6, {.reference = count(20), .measured = count(20)});
  for (double& value : blocks.front().measured) value *= 10;
  const auto tail = p95Overhead(blocks, 1);
  ASSERT_TRUE(tail && tail->interval95);
  EXPECT_NEAR(tail->interval95->low, 0, 1e-9);
  EXPECT_GT(tail->interval95->high, tail->percent);
  const std::vector<SampleBlock> equal(6, {.reference = count(20), .measured = count(20)});
  EXPECT_NEAR(p95Overhead(equal, 1)->interval95->high, 0, 1e-9);
}

TEST(NoiseBandTest, NeedsTenPairsAndIsVoidAboveTwoPercent) {
  const std::vector<Block> nine(9, {100, 100});
  EXPECT_FALSE(noiseBand(nine, 1));
  std::vector<Block> pairs(10, {101, 100});
  const auto band = noiseBand(pairs, 1);
  ASSERT_TRUE(band);
  EXPECT_NEAR(band->percent, 1, 1e-9);
  EXPECT_NEAR(band->medianPercent, 1, 1e-9);
  EXPECT_FALSE(band->isVoid());
  for (Block& pair : pairs) pair = {100, 103};  // the sign does not matter
  EXPECT_TRUE(noiseBand(pairs, 1)->isVoid());
}

TEST(NoiseBandTest, TheMedianOfManyPairsVariesLessThanOnePair) {
  std::vector<Block> pairs;
  for (int i = -12; i <= 12; ++i) pairs.push_back({100 + 0.1 * i, 100});  // -1.2 % to 1.2 %
  const auto band = noiseBand(pairs, 7);
  ASSERT_TRUE(band);
  EXPECT_NEAR(band->percent, 1.2, 0.05);
  // Exact, as above: the 8th to the 18th value, -0.5 to 0.5.
  EXPECT_NEAR(band->medianPercent, 0.5, 1e-9);
}

TEST(NoiseBandTest, ABiasOfEqualRunsWidensTheBand) {
  std::vector<Block> pairs;
  for (int i = 0; i < 12; ++i) pairs.push_back({101 + 0.1 * (i % 3), 100});  // always slower
  EXPECT_GE(noiseBand(pairs, 7)->medianPercent, 1);
}

TEST(NoiseBandTest, DistinguishableIsOutsideTheBandAndBesideZero) {
  const NoiseBand band{.percent = 1.5, .medianPercent = 0.5};
  EXPECT_TRUE(distinguishable(0.6, {0.1, 1}, band));
  EXPECT_TRUE(distinguishable(-0.6, {-1, -0.1}, band));
  EXPECT_FALSE(distinguishable(0.4, {0.1, 1}, band)) << "equal runs differ by as much";
  EXPECT_FALSE(distinguishable(0.6, {-0.1, 1}, band)) << "may be nothing";
  EXPECT_FALSE(distinguishable(-0.6, {-1, 0.1}, band));
}

TEST(NoiseBandTest, AtMostIsTheUpperEndAndNeverBelowTheBand) {
  const NoiseBand band{.percent = 1.5, .medianPercent = 0.5};
  EXPECT_EQ(atMost({0.1, 0.9}, band), 0.9);
  EXPECT_EQ(atMost({-0.3, 0.2}, band), 0.5);
}

}  // namespace
}  // namespace faultline::stats
