#include "harness/scenario/expectation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "harness/scenario/metric_table.h"

namespace faultline::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kStrategies{"fault_free", "hot_repair"};

Expectation parsed(const std::string& text) {
  const auto expectation = parseExpectation(text, kStrategies);
  EXPECT_TRUE(expectation.ok()) << expectation.status().message();
  return expectation.ok() ? *expectation : Expectation{};
}

std::string refused(const std::string& text, const std::vector<std::string>& run = kStrategies) {
  const auto expectation = parseExpectation(text, run);
  EXPECT_FALSE(expectation.ok()) << text;
  return expectation.status().message();
}

Verdict verdict(const std::string& text, std::vector<MetricValue> values) {
  return evaluate(parsed(text), [&](const std::string&, const std::string&) { return values; });
}

TEST(MetricTableTest, EachDescriptionStandsAlone) {
  for (const Metric& metric : metricTable()) {
    EXPECT_THAT(std::string(metric.doc), Not(HasSubstr("likewise"))) << metric.path;
    for (const char* const start :
         {"its ", "it ", "those ", "of them,", "the longest;", "the least of",
          "requests that have it", "from then", "from that"}) {
      EXPECT_FALSE(metric.doc.starts_with(start)) << metric.path << ": " << metric.doc;
    }
  }
}

TEST(ExpectationTest, NamesStrategyMetricAndValue) {
  const Expectation one = parsed("hot_repair.failovers.count >= 1");
  EXPECT_EQ(one.text, "hot_repair.failovers.count >= 1");
  EXPECT_EQ(one.strategy, "hot_repair");
  EXPECT_EQ(one.metric, "failovers.count");
  EXPECT_EQ(one.comparison, Comparison::kGreaterEqual);
  EXPECT_EQ(std::get<double>(one.expected), 1);
  EXPECT_EQ(parsed("wrong_elements==0").strategy, "");
  EXPECT_EQ(parsed("  wrong_elements \t!=  0 ").comparison, Comparison::kNotEqual);
}

TEST(ExpectationTest, UnitsBecomeTheCanonicalOne) {
  const auto number = [](const std::string& text) {
    return std::get<double>(parsed(text).expected);
  };
  EXPECT_EQ(number("hot_repair.failover_pause_ms.max <= 100"), 100);
  EXPECT_EQ(number("hot_repair.failover_pause_ms.max <= 0.1s"), 100);
  EXPECT_EQ(number("duration < 30s"), 30'000);
  EXPECT_EQ(number("hot_repair.overhead_pct.median <= 30%"), 30);
  EXPECT_EQ(number("hot_repair.overhead_pct.median >= -1.5"), -1.5);
  EXPECT_EQ(number("hot_repair.failovers.resent_bytes < 1MiB"), 1 << 20);
  EXPECT_EQ(std::get<bool>(parsed("hot_repair.digest_matches == true").expected), true);
  EXPECT_EQ(std::get<std::string>(parsed("status != failed").expected), "failed");
  EXPECT_EQ(std::get<std::string>(parsed("hot_repair.failovers.cause == remote_nic").expected),
            "remote_nic");
}

TEST(ExpectationTest, RefusesWhatItCannotMean) {
  EXPECT_THAT(refused("wrong_elements"), HasSubstr("is no expectation"));
  EXPECT_THAT(refused("wrong_elements = 0"), HasSubstr("is no expectation"));
  EXPECT_THAT(refused("wrong_elements == "), HasSubstr("is no expectation"));
  EXPECT_THAT(refused("wrong_elements\n== 0"), HasSubstr("several lines"));
  EXPECT_THAT(refused("== 0"), HasSubstr("is no expectation"));
  EXPECT_THAT(refused("system(x) == 0"), HasSubstr("is no expectation"));
  EXPECT_THAT(refused(std::string(5000, 'a')), HasSubstr("at most 200"));
  EXPECT_THAT(refused("wrong_elements == none"), HasSubstr("write a number"));
  EXPECT_THAT(refused("wrong_elements == 0 or 1"), HasSubstr("write a number"));
  EXPECT_THAT(refused("wrong_elements == nan"), HasSubstr("write a number"));
  EXPECT_THAT(refused("duration < 30"), HasSubstr("with its unit"));
  EXPECT_THAT(refused("status == great"), HasSubstr("one of ok, failed, hung, invalid"));
  EXPECT_THAT(refused("status < ok"), HasSubstr("has no order"));
  EXPECT_THAT(refused("evidence.ok >= true"), HasSubstr("has no order"));
  EXPECT_THAT(refused("evidence.ok == 1"), HasSubstr("true or false"));
  EXPECT_THAT(refused("hot_repair == ok"), HasSubstr("hot_repair has no metric ''"));
  EXPECT_THAT(refused("hot_repair.failovers.cuont >= 1"),
              HasSubstr("did you mean 'hot_repair.failovers.count'?"));
  EXPECT_THAT(refused("failovers.count >= 1"), HasSubstr("belongs to a strategy"));
  EXPECT_THAT(refused("hot_repare.failovers.count >= 1"),
              HasSubstr("there is no strategy 'hot_repare' (did you mean 'hot_repair'?)"));
  EXPECT_THAT(refused("armed.status == ok"), HasSubstr("does not run armed"));
  EXPECT_THAT(refused("hot_repair.overhead_pct.median < 5", {"hot_repair"}),
              HasSubstr("is measured against fault_free"));
}

TEST(ExpectationTest, HoldsOnlyForAllValuesAndSomeMustExist) {
  EXPECT_TRUE(verdict("hot_repair.failovers.count >= 1", {1.0, 2.0}).holds());
  EXPECT_EQ(verdict("hot_repair.failovers.count >= 1", {2.0, 1.0, 3.0}).value, "1");
  const Verdict one_missed = verdict("hot_repair.failovers.count >= 1", {1.0, 0.0, 2.0});
  EXPECT_FALSE(one_missed.holds());
  EXPECT_EQ(one_missed.value, "0");
  const Verdict nothing = verdict("wrong_elements == 0", {});
  EXPECT_FALSE(nothing.holds());
  EXPECT_EQ(nothing.value, "none");
}

TEST(ExpectationTest, ComparesAtTheBoundary) {
  const auto holds = [](const std::string& sign, double value) {
    return verdict("hot_repair.overhead_pct.median " + sign + " 5", {value}).holds();
  };
  EXPECT_TRUE(holds("==", 5) && !holds("==", 5.1));
  EXPECT_TRUE(holds("!=", 5.1) && !holds("!=", 5));
  EXPECT_TRUE(holds("<", 4.9) && !holds("<", 5));
  EXPECT_TRUE(holds("<=", 5) && !holds("<=", 5.1));
  EXPECT_TRUE(holds(">", 5.1) && !holds(">", 5));
  EXPECT_TRUE(holds(">=", 5) && !holds(">=", 4.9));
  EXPECT_FALSE(holds("<=", std::nan("")));
  EXPECT_FALSE(holds(">=", std::nan("")));
}

TEST(ExpectationTest, NamesAndFlagsCompareForEquality) {
  EXPECT_TRUE(verdict("status == ok", {std::string("ok"), std::string("ok")}).holds());
  EXPECT_EQ(verdict("status == ok", {std::string("ok"), std::string("hung")}).value, "hung");
  EXPECT_FALSE(verdict("evidence.ok == true", {true, false}).holds());
  EXPECT_FALSE(verdict("status == ok", {1.0}).holds()) << "a lookup of the wrong type";
}

const std::vector<std::string> kRows{"fault_free", "hot_repair", "balance", "optcc"};

Expectation comparing(const std::string& text) {
  const auto expectation = parseExpectation(text, kRows);
  EXPECT_TRUE(expectation.ok()) << expectation.status().message();
  return expectation.ok() ? *expectation : Expectation{};
}

TEST(ExpectationTest, ComparesMetricsWithEachOther) {
  const Expectation order = comparing(
      "hot_repair.overhead_pct.ci95 > balance.overhead_pct.ci95>optcc.overhead_pct.median");
  EXPECT_EQ(order.strategy, "hot_repair");
  EXPECT_EQ(order.metric, "overhead_pct.ci95");
  EXPECT_EQ(order.comparison, Comparison::kGreater);
  const std::vector<MetricName> others{{"balance", "overhead_pct.ci95"},
                                       {"optcc", "overhead_pct.median"}};
  EXPECT_EQ(order.others, others);
  EXPECT_EQ(order.metrics().size(), 3u);
  EXPECT_EQ(comparing("hot_repair.overhead_pct.median <= noise.median_band_pct").others,
            (std::vector<MetricName>{{"", "noise.median_band_pct"}}));
  EXPECT_EQ(comparing("hot_repair.duration < duration").others,
            (std::vector<MetricName>{{"", "duration"}}));
  EXPECT_TRUE(comparing("hot_repair.overhead_pct.ci95 < 30%").others.empty());
  EXPECT_TRUE(comparing("hot_repair.failovers.cause == remote_nic").others.empty());
}

TEST(ExpectationTest, RefusesMetricsThatCannotBeComparedWithEachOther) {
  const auto refusal = [](const std::string& right) {
    return refused("balance.overhead_pct.median < " + right, kRows);
  };
  EXPECT_THAT(refusal("hot_repare.overhead_pct.median"),
              HasSubstr("there is no strategy 'hot_repare' (did you mean 'hot_repair'?)"));
  EXPECT_THAT(refusal("armed.overhead_pct.median"), HasSubstr("does not run armed"));
  EXPECT_THAT(refusal("hot_repair.overhead_pct.meddian"), HasSubstr("did you mean"));
  EXPECT_THAT(refusal("overhead_pct.median"), HasSubstr("belongs to a strategy"));
  EXPECT_THAT(refusal("hot_repair.failovers.count"), HasSubstr("not the same unit"));
  EXPECT_THAT(refusal("hot_repair.status"), HasSubstr("not the same unit"));
  EXPECT_THAT(refusal("balance.overhead_pct.median"), HasSubstr("with itself"));
  EXPECT_THAT(refusal("optcc.overhead_pct.median < balance.overhead_pct.median"),
              HasSubstr("with itself"));
  EXPECT_THAT(refusal("hot_repair.overhead_pct.median > optcc.overhead_pct.median"),
              HasSubstr("the same sign"));
  EXPECT_THAT(refusal("hot_repair.overhead_pct.median <= optcc.overhead_pct.median"),
              HasSubstr("the same sign"));
  EXPECT_THAT(refusal("hot_repair.overhead_pct.median < 5"), HasSubstr("there is no metric '5'"));
  EXPECT_THAT(refusal("hot_repair.overhead_pct.median <"), HasSubstr("is no metric"));
  EXPECT_THAT(refused("balance.overhead_pct.median != optcc.overhead_pct.median", kRows),
              HasSubstr("not !="));
  EXPECT_THAT(refused("balance.overhead_pct.ci95 == 5", kRows), HasSubstr("is an interval"));
  EXPECT_THAT(refused("balance.overhead_pct.median == optcc.overhead_pct.ci95", kRows),
              HasSubstr("is an interval"));
}

TEST(ExpectationTest, AnIntervalIsAboveAnotherOneWhenTheyDoNotOverlap) {
  const auto judged = [](const std::string& text, const ValueRange& hot, const ValueRange& balance,
                         double optcc) {
    return evaluate(comparing(text),
                    [&](const std::string& row, const std::string&) -> std::vector<MetricValue> {
                      if (row == "optcc") return {optcc};
                      return {row == "balance" ? balance : hot};
                    });
  };
  const std::string order =
      "hot_repair.overhead_pct.ci95 > balance.overhead_pct.ci95 > optcc.overhead_pct.median";
  const Verdict apart = judged(order, {7.5, 7.9}, {0.9, 1.2}, 0.5);
  EXPECT_TRUE(apart.holds()) << apart.why;
  EXPECT_EQ(apart.value, "[7.5, 7.9]; [0.9, 1.2]; 0.5");
  const Verdict within = judged(order, {7.5, 7.9}, {0.9, 1.2}, 1.0);
  EXPECT_FALSE(within.holds()) << "the median of one is in the interval of the other";
  EXPECT_EQ(within.why, "balance.overhead_pct.ci95 is not > optcc.overhead_pct.median.");
  EXPECT_FALSE(judged(order, {1.1, 7.9}, {0.9, 1.2}, 0.5).holds()) << "they overlap";
  EXPECT_FALSE(judged(order, {0.1, 0.2}, {0.9, 1.2}, 0.5).holds());
  const std::string touching = "balance.overhead_pct.ci95 < hot_repair.overhead_pct.ci95";
  EXPECT_FALSE(judged(touching, {2, 3}, {1, 2}, 0).holds());
  EXPECT_TRUE(judged("balance.overhead_pct.ci95 <= hot_repair.overhead_pct.ci95", {2, 3}, {1, 2}, 0)
                  .holds());
}

TEST(ExpectationTest, AllValuesOfOneMetricAgainstAllOfTheOther) {
  const auto judged = [](std::vector<MetricValue> hot, std::vector<MetricValue> balance) {
    return evaluate(comparing("hot_repair.failovers.count >= balance.failovers.count"),
                    [&](const std::string& row, const std::string&) {
                      return row == "balance" ? balance : hot;
                    });
  };
  EXPECT_TRUE(judged({3.0, 4.0}, {1.0, 3.0}).holds());
  EXPECT_FALSE(judged({2.0, 4.0}, {1.0, 3.0}).holds()) << "2 against 3";
  EXPECT_FALSE(judged({2.0}, {}).holds()) << "nothing to look at";
  EXPECT_FALSE(judged({std::nan("")}, {1.0}).holds());
  EXPECT_FALSE(judged({1.0}, {std::nan("")}).holds());
}

TEST(ExpectationTest, OfWhatHadNotEndedOnlyALowerLimitIsKnown) {
  using Outcome = Verdict::Outcome;
  const auto outcome = [](const std::string& comparison, std::vector<MetricValue> values) {
    return verdict("hot_repair.iteration_ms.max " + comparison, std::move(values)).outcome;
  };
  const MetricValue some = AtLeast{200};
  EXPECT_EQ(outcome("<= 100", {some}), Outcome::kFails);
  EXPECT_EQ(outcome("<= 300", {some}), Outcome::kUnknown);
  EXPECT_EQ(outcome("< 200", {some}), Outcome::kFails);
  EXPECT_EQ(outcome("<= 200", {some}), Outcome::kUnknown);
  EXPECT_EQ(outcome(">= 200", {some}), Outcome::kHolds);
  EXPECT_EQ(outcome("> 200", {some}), Outcome::kUnknown);
  EXPECT_EQ(outcome("== 100", {some}), Outcome::kFails);
  EXPECT_EQ(outcome("!= 100", {some}), Outcome::kHolds);
  EXPECT_EQ(outcome("== 300", {some}), Outcome::kUnknown);
  EXPECT_EQ(outcome("<= 300", {some, 301.0}), Outcome::kFails) << "what is known decides";
  EXPECT_EQ(outcome("<= 300", {}), Outcome::kUnknown);
  EXPECT_EQ(verdict("hot_repair.iteration_ms.max <= 100", {some}).value, "at least 200");

  const auto order = [](const MetricValue& hot, const MetricValue& balance) {
    return evaluate(comparing("hot_repair.iteration_ms.max < balance.iteration_ms.max"),
                    [&](const std::string& row, const std::string&) {
                      return std::vector<MetricValue>{row == "balance" ? balance : hot};
                    })
        .outcome;
  };
  EXPECT_EQ(order(100.0, some), Outcome::kHolds);
  EXPECT_EQ(order(300.0, some), Outcome::kUnknown);
  EXPECT_EQ(order(some, 100.0), Outcome::kFails);
  EXPECT_EQ(order(some, 300.0), Outcome::kUnknown);
  EXPECT_EQ(order(some, some), Outcome::kUnknown);
}

TEST(ExpectationTest, TextsContain) {
  const Expectation one = parsed("hot_repair.errors.message contains 'rank 1'");
  EXPECT_EQ(one.metric, "errors.message");
  EXPECT_EQ(one.comparison, Comparison::kContains);
  EXPECT_EQ(signOf(one.comparison), "contains");
  EXPECT_EQ(std::get<std::string>(one.expected), "rank 1");
  EXPECT_EQ(std::get<std::string>(parsed("hot_repair.message contains a >= b").expected), "a >= b");
  EXPECT_EQ(std::get<std::string>(parsed("hot_repair.failovers.cause contains nic").expected),
            "nic");
  EXPECT_EQ(std::get<std::string>(parsed("hot_repair.message == \"two words\"").expected),
            "two words");
  EXPECT_TRUE(verdict("hot_repair.message contains b", {std::string("abc")}).holds());
  EXPECT_FALSE(
      verdict("hot_repair.message contains b", {std::string("abc"), std::string("ac")}).holds());
  EXPECT_THAT(refused("hot_repair.failovers.count contains 1"), HasSubstr("is no text"));
  EXPECT_THAT(refused("evidence.ok contains true"), HasSubstr("compare it with == or !="));
  EXPECT_THAT(refused("status contains great"), HasSubstr("can never contain 'great'"));
  EXPECT_THAT(refused("hot_repair.message contains"), HasSubstr("is no expectation"));
  EXPECT_THAT(refused("hot_repair.message contains ''"), HasSubstr("empty text"));
  EXPECT_THAT(refused("hot_repair.message < b"), HasSubstr("==, != or contains"));
}

TEST(ExpectationTest, PrintsWholeNumbersInFull) {
  EXPECT_EQ(verdict("checked_elements > 0", {1234567890.0}).value, "1234567890");
  EXPECT_EQ(verdict("hot_repair.overhead_pct.median < 5", {1.23456}).value, "1.235");
}

TEST(MetricTableTest, PathsAreUniqueForTheirOwnerAndDocumented) {
  std::set<std::string_view> of_strategy, of_result;
  for (const Metric& metric : metricTable()) {
    EXPECT_FALSE(metric.doc.empty()) << metric.path;
    if (metric.owner != Metric::Owner::kGlobal) {
      EXPECT_TRUE(of_strategy.insert(metric.path).second) << metric.path;
    }
    if (metric.owner != Metric::Owner::kStrategy) {
      EXPECT_TRUE(of_result.insert(metric.path).second) << metric.path;
    }
  }
  EXPECT_EQ(findMetric("failovers.count", false), nullptr);
  EXPECT_NE(findMetric("duration", true), findMetric("duration", false));
}

}  // namespace
}  // namespace faultline::scenario
