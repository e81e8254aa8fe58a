#include "harness/history/trend.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace faultline::history {
namespace {

using reports::Change;
using reports::Comparison;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(TrendTest, WhatIsNeverOverAnyMoreIsARegressionWithoutANumber) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const auto back = [](const std::vector<double>& times) {
    std::vector<StoredResult> results = nights(times);
    for (StoredResult& one : results) {
      auto entry = one.metrics.extract({"hot_repair", "throughput"});
      entry.key() = {"hot_repair", "back_to_95_pct_ms"};
      one.metrics.insert(std::move(entry));
    }
    return trendOf(results);
  };
  const Comparison never = back({140, 141, 142, 140, kNever});
  ASSERT_EQ(never.rows.size(), 1u);
  EXPECT_EQ(never.regressions(), 1);
  EXPECT_FALSE(never.rows[0].difference);
  const std::string page = reports::comparisonHtml(never);
  EXPECT_THAT(page, HasSubstr("never"));
  EXPECT_THAT(page, Not(HasSubstr("cy=\"nan\"")));
  EXPECT_THAT(page, Not(HasSubstr("cy=\"-inf\"")));
  const Comparison again = back({140, kNever, 142, 140, kNever});
  EXPECT_EQ(again.regressions(), 0) << "it has happened before";
  EXPECT_EQ(again.rows[0].change, Change::kNotDistinguishable);
  EXPECT_THAT(again.rows[0].note, HasSubstr("in 1 of the 4 nights before it was never over"));
  EXPECT_EQ(back({kNever, kNever, kNever, kNever}).regressions(), 0);
}

TEST(TrendTest, WhatNightsDifferByIsNoChange) {
  std::vector<double> speeds(10, 100);
  speeds.insert(speeds.end(), {89, 90});
  const Comparison wide = trendOf(nights(speeds));
  EXPECT_EQ(wide.rows[0].change, Change::kNotDistinguishable);
  EXPECT_THAT(wide.rows[0].note, HasSubstr("nights before"));
  EXPECT_FALSE(wide.rows[0].regression);
  speeds[10] = 99;
  EXPECT_EQ(trendOf(nights(speeds)).rows[0].change, Change::kWorse);
  // Below all nights before, which are only three, and differ themselves.
  EXPECT_EQ(trendOf(nights({100, 104, 97, 94})).rows[0].change, Change::kNotDistinguishable);
  EXPECT_EQ(trendOf(nights({100, 100.1, 99.9, 94})).regressions(), 1);
}

TEST(TrendTest, BeforeTheFourthNightADifferenceIsNotYetAChange) {
  for (const std::vector<double>& speeds :
       std::vector<std::vector<double>>{{100, 95}, {100, 105}, {100, 101, 95}, {100, 70}}) {
    const Comparison early = trendOf(nights(speeds));
    ASSERT_EQ(early.rows.size(), 1u);
    EXPECT_EQ(early.rows[0].change, Change::kTooFewNights) << speeds.back();
    EXPECT_THAT(early.rows[0].note, HasSubstr("from 3 on"));
    EXPECT_EQ(early.regressions(), 0);
    EXPECT_EQ(early.standing(), reports::Standing::kUnproven) << "nothing could be judged";
    EXPECT_THAT(early.verdict(), HasSubstr("1 too few nights"));
  }
  EXPECT_EQ(trendOf(nights({100, 100})).rows[0].change, Change::kNotDistinguishable);
  EXPECT_EQ(trendOf(nights({100, 100, 100, 95})).regressions(), 1);
}

TEST(TrendTest, APlainChangeIsToldFromTheSecondNightOn) {
  for (const std::vector<double>& speeds :
       std::vector<std::vector<double>>{{100, 50}, {100, 101, 50}, {100, 120, 85, 50}}) {
    const Comparison plain = trendOf(nights(speeds));
    EXPECT_EQ(plain.rows[0].change, Change::kWorse) << speeds.size();
    EXPECT_EQ(plain.standing(), reports::Standing::kWorse);
  }
  EXPECT_EQ(trendOf(nights({100, 200})).rows[0].change, Change::kBetter);
  // But not where there was such a night before, and the others let expect another one.
  std::vector<double> speeds(13, 100);
  speeds.insert(speeds.end(), {45, 55});
  const Comparison seen = trendOf(nights(speeds));
  EXPECT_EQ(seen.rows[0].change, Change::kNotDistinguishable);
  EXPECT_THAT(seen.rows[0].note, HasSubstr("14 nights before"));
  speeds[13] = 100;
  EXPECT_EQ(trendOf(nights(speeds)).rows[0].change, Change::kWorse);
}

TEST(TrendTest, PercentagesAreHeldAgainstEachOtherInPoints) {
  const auto change = [](double from, double to) {
    std::vector<StoredResult> results = nights({from, to});
    for (StoredResult& result : results) {
      const StoredMetric metric = result.metrics.begin()->second;
      result.metrics.clear();
      result.metrics[{"hot_repair", "overhead_pct"}] = metric;
    }
    return trendOf(results).rows.at(0).change;
  };
  EXPECT_EQ(change(2, 20), Change::kTooFewNights) << "ten times as much, and 18 points";
  EXPECT_EQ(change(30, 100), Change::kWorse);
}

TEST(TrendTest, WhatIsCountedNeedsNoNights) {
  std::vector<StoredResult> results = nights({100, 100});
  for (StoredResult& result : results) {
    result.metrics[{"hot_repair", "incomplete_runs"}] = {.unit = "runs", .values = {0, 0, 0}};
  }
  EXPECT_EQ(trendOf(results).regressions(), 0);
  results.back().metrics[{"hot_repair", "incomplete_runs"}].values[1] = 1;
  EXPECT_EQ(trendOf(results).regressions(), 1);
}

TEST(TrendTest, WhatEqualRunsOfAUsualNightDifferByIsNoChange) {
  const auto rowOf = [](const std::vector<double>& bands) {
    std::vector<StoredResult> results = nights({100, 100, 100, 97});
    for (std::size_t i = 0; i < results.size(); ++i) results[i].median_band_pct = bands.at(i);
    return trendOf(results).rows.at(0);
  };
  EXPECT_TRUE(rowOf({0, 0, 0, 0}).regression) << "nobody looked";
  EXPECT_TRUE(rowOf({1, 1, 1, 1}).regression);
  EXPECT_EQ(rowOf({4, 4, 4, 1}).change, Change::kNotDistinguishable);
  EXPECT_THAT(rowOf({4, 4, 4, 1}).note, HasSubstr("equal runs differ by up to 4.00 %"));
  EXPECT_EQ(rowOf({1, 1, 1, 4}).change, Change::kNotDistinguishable) << "the newest's own";
  EXPECT_EQ(rowOf({0, 0, 4, 1}).change, Change::kNotDistinguishable) << "of those that know it";
  EXPECT_TRUE(rowOf({1, 40, 1, 1}).regression) << "one noisy night";
}

TEST(TrendTest, OnlyTheLastNightsCount) {
  const auto results = nights({50, 50, 50, 100, 100, 100, 90});
  EXPECT_EQ(trendOf(results).rows[0].change, Change::kNotDistinguishable);
  const Comparison last = trendOf(results, 3);
  EXPECT_EQ(last.regressions(), 1);
  EXPECT_EQ(last.rows[0].base.n, 3 * kRunsOfANight);
  EXPECT_EQ(last.rows[0].nights.size(), 7u) << "all are drawn";
  EXPECT_FALSE(last.rows[0].nights[0].compared);
  EXPECT_TRUE(last.rows[0].nights[5].compared);
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
