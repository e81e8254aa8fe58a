#include "harness/history/trend.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::history {
namespace {

using reports::Change;
using reports::Comparison;
using ::testing::HasSubstr;

constexpr int kRunsOfANight = 6;

/// A night with six speeds of hot_repair around `speed`, a percent apart in all.
StoredResult night(int day, double speed, const std::string& scenario = "quickstart") {
  StoredResult result{.scenario = scenario,
                      .started_at = fmt::format("2026-05-{:02}T01:00:00Z", day),
                      .git = fmt::format("commit{}", day),
                      .kernel = "Linux 6.1",
                      .cpu = "Example CPU",
                      .cores = 8,
                      .verdict = "pass",
                      .median_band_pct = 0,
                      .void_because = "",
                      .metrics = {}};
  StoredMetric& metric = result.metrics[{"hot_repair", "throughput"}];
  metric.unit = "iterations/s";
  for (int i = 0; i < kRunsOfANight; ++i) {
    metric.values.push_back(speed * (0.995 + 0.002 * i + 0.0001 * day));
  }
  return result;
}

std::vector<StoredResult> nights(const std::vector<double>& speeds) {
  std::vector<StoredResult> results;
  for (const double speed : speeds) {
    results.push_back(night(static_cast<int>(results.size()) + 1, speed));
  }
  return results;
}

Comparison trendOf(const std::vector<StoredResult>& results, int most = 14) {
  return trend(results, {.name = "results.db", .nights = most, .tolerance_pct = 2});
}

TEST(TrendTest, ASlowNightIsARegressionAndAnEqualOneIsNot) {
  EXPECT_EQ(trendOf(nights({100, 100, 100, 100})).regressions(), 0);
  const Comparison slow = trendOf(nights({100, 100, 100, 90}));
  ASSERT_EQ(slow.rows.size(), 1u);
  EXPECT_EQ(slow.rows[0].change, Change::kWorse);
  EXPECT_EQ(slow.rows[0].base.n, 3 * kRunsOfANight);
  EXPECT_EQ(slow.rows[0].now.n, kRunsOfANight);
  EXPECT_EQ(slow.rows[0].unit, "iterations/s");
  EXPECT_EQ(slow.rows[0].nights.size(), 4u);
  EXPECT_EQ(slow.regressions(), 1);
}

TEST(TrendTest, WhatNightsDifferByIsNoChange) {
  std::vector<double> speeds(10, 100);
  speeds.insert(speeds.end(), {89, 90});
  const Comparison wide = trendOf(nights(speeds));
  EXPECT_EQ(wide.rows[0].change, Change::kNotDistinguishable);
  EXPECT_THAT(wide.rows[0].note, HasSubstr("nights before"));
  speeds[10] = 91;
  EXPECT_EQ(trendOf(nights(speeds)).rows[0].change, Change::kWorse);
}

TEST(TrendTest, OnlyTheLastNightsCount) {
  const auto results = nights({50, 50, 50, 100, 100, 90});
  EXPECT_EQ(trendOf(results).rows[0].change, Change::kNotDistinguishable);
  const Comparison last = trendOf(results, 2);
  EXPECT_EQ(last.regressions(), 1);
  EXPECT_EQ(last.rows[0].base.n, 2 * kRunsOfANight);
  EXPECT_EQ(last.rows[0].nights.size(), 6u) << "all are drawn";
  EXPECT_FALSE(last.rows[0].nights[0].compared);
  EXPECT_TRUE(last.rows[0].nights[4].compared);
}

TEST(TrendTest, OtherMachinesAndNoisyNightsAreNoBaseline) {
  auto results = nights({100, 100, 100, 90});
  for (std::size_t i = 0; i < 3; ++i) results[i].cpu = "another CPU";
  EXPECT_EQ(trendOf(results).rows[0].change, Change::kMissingInBase);
  EXPECT_EQ(trendOf(results).judged(), 0);

  results = nights({100, 100, 100, 90});
  results[1].void_because = "too noisy";
  EXPECT_EQ(trendOf(results).rows[0].base.n, 2 * kRunsOfANight);
  results[3].void_because = "too noisy";
  EXPECT_EQ(trendOf(results).rows[0].change, Change::kVoid);
}

TEST(TrendTest, AStrategyThatIsNoLongerMeasuredIsARow) {
  auto results = nights({100, 100, 100});
  results.back().metrics.clear();
  EXPECT_EQ(trendOf(results).rows[0].change, Change::kMissingInNew);
  EXPECT_EQ(trendOf(results).vanished(), std::vector<std::string>{"quickstart: hot_repair"});
  EXPECT_EQ(trendOf(results).standing(), reports::Standing::kWorse);
}

TEST(TrendTest, AScenarioThatTheLastNightDidNotRunHasVanished) {
  const auto runOn = [](const std::vector<int>& others) {
    auto results = nights({100, 100, 100, 100});
    for (const int day : others) results.push_back(night(day, 50, "other"));
    return results;
  };
  EXPECT_THAT(trendOf(runOn({1, 2, 3, 4})).vanished(), ::testing::IsEmpty());
  const Comparison gone = trendOf(runOn({1, 2, 3}));
  EXPECT_EQ(gone.vanished(), std::vector<std::string>{"other"});
  EXPECT_EQ(gone.standing(), reports::Standing::kWorse);
  EXPECT_THAT(reports::comparisonText(gone), HasSubstr("other: 3 pass -> no result"));
  Comparison allowed = gone;
  allowed.allow_missing = true;
  EXPECT_EQ(allowed.standing(), reports::Standing::kAsGood);
  // The first of a night, and the last, whatever the order of the list is.
  auto first = runOn({1, 2, 3});
  for (StoredResult& one : first) {
    if (one.scenario == "other") one.started_at.replace(11, 2, "00");
  }
  EXPECT_EQ(trendOf(first).vanished(), std::vector<std::string>{"other"});
  EXPECT_THAT(trendOf(runOn({4})).vanished(), ::testing::IsEmpty()) << "new";
  EXPECT_THAT(trendOf(runOn({1}), 2).vanished(), ::testing::IsEmpty()) << "long ago";
  auto elsewhere = runOn({1, 2, 3});
  for (std::size_t i = 4; i < elsewhere.size(); ++i) elsewhere[i].cpu = "another CPU";
  EXPECT_THAT(trendOf(elsewhere).vanished(), ::testing::IsEmpty()) << "another machine's";
}

TEST(TrendTest, ANightThatFailsIsWorseWhereMostPassed) {
  auto results = nights({100, 100, 100, 100, 100});
  EXPECT_EQ(trendOf(results).standing(), reports::Standing::kAsGood);
  results[1].verdict = "fail";
  results.back().verdict = "fail";
  EXPECT_EQ(trendOf(results).failsNow(), std::vector<std::string>{"quickstart"});
  EXPECT_EQ(trendOf(results).standing(), reports::Standing::kWorse);
  results[2].verdict = "error";
  EXPECT_EQ(trendOf(results).standing(), reports::Standing::kAsGood) << "half of them failed too";
  results[1].verdict = results[2].verdict = "pass";
  results.back().verdict = "invalid";
  EXPECT_EQ(trendOf(results).standing(), reports::Standing::kUnproven);
}

TEST(TrendTest, ScenariosAreApart) {
  auto results = nights({100, 100, 100, 100});
  for (int day = 1; day <= 4; ++day) results.push_back(night(day, day == 4 ? 40 : 50, "other"));
  const Comparison comparison = trendOf(results);
  EXPECT_EQ(comparison.scenarios.size(), 2u);
  EXPECT_EQ(comparison.regressions(), 1);
  EXPECT_EQ(comparison.rows[0].scenario, "other");
  EXPECT_TRUE(comparison.rows[0].regression);
}

}  // namespace
}  // namespace faultline::history
