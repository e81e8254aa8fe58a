#include "harness/analysis/compare_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sample_scenario.h"

namespace faultline::run {
namespace {

using reports::Change;
using reports::Comparison;
using reports::ScenarioResult;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Six blocks, or as many; no two speeds are equal. hot_repair takes `overhead_pct` longer, and
/// everything runs at `speed` times the sample's.
ScenarioResult result(double overhead_pct, double speed = 1, int blocks = 6) {
  ScenarioResult made;
  made.scenario = {{"name", "sample"}, {"workload", {{"iterations", 10}}}};
  made.environment.kernel = "Linux 6.1";
  made.environment.cores = 2;
  made.verdict = reports::Verdict::kPass;
  for (int block = 0; block < blocks; ++block) {
    const double jitter = 1 + 0.001 * block;
    made.runs.push_back(sampleRun("fault_free", block, 100 * speed * jitter));
    made.runs.push_back(
        faultedRun("hot_repair", block, 100 * speed / (1 + (overhead_pct + 0.01 * block) / 100)));
    made.runs.back().failovers.emplace_back().pause_ms = 20 + 0.1 * block;
    made.runs.back().failovers.emplace_back().pause_ms = 5;
  }
  return made;
}

Comparison compared(const ScenarioResult& base, const ScenarioResult& now, double tolerance = 2) {
  return compare(std::span(&base, 1), std::span(&now, 1), {"b", "n", tolerance});
}

const Comparison::Row& rowOf(const Comparison& comparison, const std::string& strategy,
                             const std::string& metric) {
  for (const Comparison::Row& row : comparison.rows) {
    if (row.strategy == strategy && row.metric == metric) return row;
  }
  throw std::runtime_error("no row of " + strategy + " " + metric);
}

/// Six runs of a server whose requests take `slowness` times as long, one in 20 of them six times.
ScenarioResult served(double slowness, double tail = 6) {
  ScenarioResult made = result(20);
  for (reports::Run& run : made.runs) {
    for (int i = 0; i < 100; ++i) {
      const double time = (100 + run.block + 0.01 * i) * slowness * (i % 20 >= 18 ? tail : 1);
      const bool good = time < 500;
      run.requests.push_back({.id = i,
                              .fate = good ? "finished" : "late",
                              .ttft_ms = time,
                              .tpot_ms = time / 10,
                              .e2e_ms = time * 5});
    }
  }
  return made;
}

TEST(ComparisonTest, SlowerRequestsAreARegression) {
  const Comparison slower = compared(served(1), served(1.2));
  for (const char* metric : {"ttft_ms", "ttft_p95_ms", "tpot_ms", "e2e_ms"}) {
    EXPECT_TRUE(rowOf(slower, "hot_repair", metric).regression) << metric;
    EXPECT_NEAR(*rowOf(slower, "hot_repair", metric).difference, 20, 0.1) << metric;
  }
  const Comparison tail = compared(served(1, 1), served(1, 4));
  EXPECT_FALSE(rowOf(tail, "hot_repair", "ttft_ms").regression);
  EXPECT_TRUE(rowOf(tail, "hot_repair", "ttft_p95_ms").regression) << "only the tail is slower";
  const Comparison late = compared(served(1, 1), served(1, 6));
  EXPECT_TRUE(rowOf(late, "hot_repair", "good_pct").regression);
  EXPECT_NEAR(*rowOf(late, "hot_repair", "good_pct").difference, -10, 1e-9) << "in points";
}

TEST(ComparisonTest, SlowerCallsOfASweepAreARegressionOfTheirSize) {
  const auto swept = [](double small, double large) {
    ScenarioResult made = result(20);
    for (reports::Run& run : made.runs) {
      for (const std::int64_t size : {1 << 10, 1 << 20, 8 << 20, 64 << 20}) {
        reports::CollectiveRow& row = run.collectives.emplace_back();
        row.size_bytes = size;
        row.p50_ms = (size < 8 << 20 ? small : large) * static_cast<double>(size) * 1e-5 *
                     (1 + 0.001 * run.block);
      }
    }
    return made;
  };
  const Comparison slower = compared(swept(1, 1), swept(1, 1.1));
  EXPECT_FALSE(rowOf(slower, "hot_repair", "small_calls_ms").regression);
  EXPECT_TRUE(rowOf(slower, "hot_repair", "large_calls_ms").regression);
  EXPECT_NEAR(*rowOf(slower, "hot_repair", "large_calls_ms").difference, 10, 0.1);
  EXPECT_TRUE(
      rowOf(compared(swept(1, 1), swept(1.1, 1)), "hot_repair", "small_calls_ms").regression);
}

TEST(ComparisonTest, EqualResultsAreNotDistinguishable) {
  const Comparison same = compared(result(20), result(20));
  EXPECT_EQ(same.regressions(), 0);
  EXPECT_EQ(same.judged(), static_cast<int>(same.rows.size()));
  for (const Comparison::Row& row : same.rows) {
    EXPECT_EQ(row.change, Change::kNotDistinguishable) << row.metric;
    EXPECT_EQ(row.base.n, 6) << row.metric;
    EXPECT_TRUE(row.base.ci95) << row.metric;
  }
}

TEST(ComparisonTest, SlowerIsWorseAndFasterIsBetterWhateverTheMetricsSign) {
  const Comparison slower = compared(result(20), result(30, 0.9));
  const auto& throughput = rowOf(slower, "fault_free", "throughput");
  EXPECT_EQ(throughput.change, Change::kWorse);
  EXPECT_TRUE(throughput.regression);
  EXPECT_NEAR(*throughput.difference, -10, 0.01);
  EXPECT_NEAR(*throughput.p, 2.0 / 924, 1e-12) << "6 against 6, fully apart";
  EXPECT_EQ(throughput.unit, "iterations/s");
  const auto& overhead = rowOf(slower, "hot_repair", "overhead_pct");
  EXPECT_EQ(overhead.change, Change::kWorse);
  EXPECT_NEAR(*overhead.difference, 10, 1) << "points, not percent of the overhead";
  EXPECT_EQ(overhead.difference_unit, "points");

  const Comparison faster = compared(result(30, 0.9), result(20));
  EXPECT_EQ(rowOf(faster, "fault_free", "throughput").change, Change::kBetter);
  EXPECT_EQ(rowOf(faster, "hot_repair", "overhead_pct").change, Change::kBetter);
  EXPECT_EQ(faster.regressions(), 0);

  const Comparison faster_by_a_tenth = compared(result(20, 0.009), result(20, 0.01));
  EXPECT_EQ(rowOf(faster_by_a_tenth, "fault_free", "throughput").change, Change::kBetter)
      << "from 0.9 to 1 per second: the unit does not matter";
}

TEST(ComparisonTest, AChangeWithinTheToleranceIsNoRegression) {
  const auto slower = result(21);
  EXPECT_EQ(rowOf(compared(result(20), slower), "hot_repair", "overhead_pct").change,
            Change::kWorse);
  EXPECT_EQ(compared(result(20), slower, 2).regressions(), 0);
  EXPECT_GT(compared(result(20), slower, 0.5).regressions(), 0);
}

TEST(ComparisonTest, FewerThanFiveValuesAreNotCompared) {
  const Comparison few = compared(result(20, 1, 4), result(90, 0.1, 6));
  EXPECT_EQ(rowOf(few, "hot_repair", "overhead_pct").change, Change::kTooFew);
  EXPECT_EQ(few.judged(), 0);
  EXPECT_THAT(few.verdict(), HasSubstr("no row could be compared"));
  EXPECT_GT(compared(result(20, 1, 5), result(90, 0.1, 5)).regressions(), 0);
}

/// Runs of hot_repair that are back after about `back_ms`; nullopt: not in `watched_ms`.
ScenarioResult cameBack(std::optional<double> back_ms, double watched_ms = 9000) {
  ScenarioResult made = result(20);
  for (reports::Run& run : made.runs) {
    if (run.strategy != "hot_repair") continue;
    run.after_fault.emplace().watched_ms = watched_ms;
    run.after_pct = 90;
    if (back_ms) run.back_to_95_pct_ms = run.after_fault->back_ms = *back_ms + run.block;
  }
  return made;
}

/// All runs of hot_repair die, and tell what they had seen.
ScenarioResult died(ScenarioResult made, int from_block = 0) {
  for (reports::Run& run : made.runs) {
    if (run.strategy != "hot_repair" || run.block < from_block) continue;
    run.status = reports::RunStatus::kFailed;
    run.throughput.reset();
    if (run.after_fault) run.after_fault->watched_ms = run.after_fault->after_pct = 0;
    if (run.after_pct) run.after_pct = 0;
    run.back_to_95_pct_ms.reset();
  }
  return made;
}

TEST(ComparisonTest, AJobThatDiesIsNotBackSooner) {
  const Comparison now = compared(cameBack(140), died(cameBack(140)));
  const auto& row = rowOf(now, "hot_repair", "back_to_95_pct_ms");
  EXPECT_EQ(row.change, Change::kWorse);
  EXPECT_TRUE(row.regression);
  EXPECT_FALSE(row.difference);
  EXPECT_EQ(rowOf(now, "hot_repair", "after_pct").change, Change::kWorse);
  EXPECT_THAT(reports::comparisonText(now), HasSubstr("never"));
  EXPECT_EQ(reports::comparisonJson(now)["rows"].dump().find("null,\"ci95\":[null"),
            std::string::npos);
  const auto both =
      rowOf(compared(died(cameBack(140)), died(cameBack(140))), "hot_repair", "back_to_95_pct_ms");
  EXPECT_EQ(both.change, Change::kNotDistinguishable);
  EXPECT_FALSE(both.difference);
}

TEST(ComparisonTest, WhatIsNeverBackIsWorseThanWhatIs) {
  const auto row =
      rowOf(compared(cameBack(2000), cameBack(std::nullopt)), "hot_repair", "back_to_95_pct_ms");
  EXPECT_EQ(row.change, Change::kWorse);
  EXPECT_TRUE(row.regression);
  EXPECT_FALSE(row.difference) << "nobody knows how long it takes";
  EXPECT_EQ(
      rowOf(compared(cameBack(std::nullopt), cameBack(2000)), "hot_repair", "back_to_95_pct_ms")
          .change,
      Change::kBetter);
}

TEST(ComparisonTest, WhatWasWatchedForLessThanTheOtherSideTookIsVoid) {
  const auto row = rowOf(compared(cameBack(2000), cameBack(std::nullopt, 1500)), "hot_repair",
                         "back_to_95_pct_ms");
  EXPECT_EQ(row.change, Change::kVoid);
  EXPECT_THAT(row.note, AllOf(HasSubstr("NEW"), HasSubstr("1500 ms"), HasSubstr("2005 ms")));
  EXPECT_EQ(rowOf(compared(cameBack(std::nullopt, 1500), cameBack(2000)), "hot_repair",
                  "back_to_95_pct_ms")
                .change,
            Change::kVoid);
}

TEST(ComparisonTest, RunsThatAreMissingBecauseTheyDiedMakeNoSideBetter) {
  // Six of eight blocks of NEW die; those that are left are faster.
  const ScenarioResult base = result(30, 1, 12);
  const Comparison now = compared(base, died(result(20, 1, 12), 6));
  for (const char* metric : {"throughput", "overhead_pct", "longest_iteration_ms"}) {
    EXPECT_NE(rowOf(now, "hot_repair", metric).change, Change::kBetter) << metric;
  }
  const auto& row = rowOf(now, "hot_repair", "throughput");
  EXPECT_EQ(row.change, Change::kVoid);
  EXPECT_THAT(row.note, HasSubstr("6 runs of NEW ended before the work was done"));
  EXPECT_TRUE(rowOf(now, "hot_repair", "incomplete_runs").regression);
  const auto slower = compared(base, died(result(40, 1, 12), 6));
  EXPECT_TRUE(rowOf(slower, "hot_repair", "throughput").regression) << "those left are slower";
}

TEST(ComparisonTest, APauseOrARestartThatWasNeverOverIsTheLongest) {
  const auto restarted = [](bool dies) {
    ScenarioResult made = result(20);
    for (reports::Run& run : made.runs) {
      for (reports::Failover& failover : run.failovers) failover.resumed_ms = 200;
      if (run.strategy != "hot_repair") continue;
      run.restarts.emplace_back().hang_ms = dies ? 10.0 : 100.0 + run.block;
      if (dies) run.failovers.back().resumed_ms.reset();
    }
    return dies ? died(std::move(made)) : made;
  };
  const Comparison now = compared(restarted(false), restarted(true));
  EXPECT_TRUE(rowOf(now, "hot_repair", "restart_ms").regression);
  EXPECT_TRUE(rowOf(now, "hot_repair", "pause_ms").regression);
}

TEST(ComparisonTest, RequestsThatWereNeverServedAreTheSlowest) {
  ScenarioResult now = served(1);
  for (reports::Run& run : now.runs) {
    for (std::size_t i = 0; i < 70; ++i) {  // the slower ones of them are gone
      reports::ServedRequest& request = run.requests[i];
      request.fate = "lost";
      request.output = 10;
      request.ttft_ms = request.tpot_ms = request.e2e_ms = std::nullopt;
    }
  }
  const Comparison found = compared(served(1.2), now);
  for (const char* metric : {"ttft_ms", "ttft_p95_ms", "tpot_ms", "e2e_ms"}) {
    EXPECT_TRUE(rowOf(found, "hot_repair", metric).regression) << metric;
  }
}

TEST(ComparisonTest, TheLongestPauseOfARunIsOneValue) {
  auto longer = result(20);
  for (auto& run : longer.runs) {
    if (!run.failovers.empty()) run.failovers[0].pause_ms *= 2;
  }
  const auto comparison = compared(result(20), longer);
  const auto& row = rowOf(comparison, "hot_repair", "pause_ms");
  EXPECT_EQ(row.change, Change::kWorse);
  EXPECT_EQ(row.base.n, 6) << "failovers of one run are not independent";
  EXPECT_NEAR(*row.difference, 100, 1e-9);
}

TEST(ComparisonTest, WhatIsOnOneSideOnlyIsARow) {
  auto without = result(20);
  std::erase_if(without.runs, [](const reports::Run& run) { return run.strategy == "hot_repair"; });
  const Comparison gone = compared(result(20), without);
  EXPECT_EQ(rowOf(gone, "hot_repair", "throughput").change, Change::kMissingInNew);
  EXPECT_THAT(gone.verdict(), HasSubstr("missing in NEW"));
  const Comparison added = compared(without, result(20));
  EXPECT_EQ(rowOf(added, "hot_repair", "throughput").change, Change::kMissingInBase);

  auto other = result(20);
  other.scenario["name"] = "other";
  const Comparison nothing = compared(result(20), other);
  EXPECT_EQ(nothing.scenarios.size(), 2u);
  EXPECT_THAT(nothing.scenarios[1].base_verdicts, IsEmpty());
  EXPECT_EQ(nothing.judged(), 0);
}

TEST(ComparisonTest, RunsThatNoLongerEndAreWorseWithoutAnyTest) {
  auto broken = result(20);
  for (auto& run : broken.runs) {
    if (run.strategy != "hot_repair" || run.block < 2) continue;
    run.status = reports::RunStatus::kFailed;
  }
  const Comparison comparison = compared(result(20), broken);
  const auto& runs = rowOf(comparison, "hot_repair", "incomplete_runs");
  EXPECT_EQ(runs.change, Change::kWorse);
  EXPECT_TRUE(runs.regression);
  EXPECT_EQ(rowOf(comparison, "hot_repair", "throughput").change, Change::kTooFew);

  auto wrong = result(20);
  wrong.runs[1].wrong_elements = 1;
  EXPECT_TRUE(rowOf(compared(result(20), wrong), "hot_repair", "wrong_elements").regression);
  EXPECT_EQ(compared(wrong, wrong).regressions(), 0);
}

TEST(ComparisonTest, NoiseMakesSpeedsVoidAndNothingElse) {
  auto noisy = result(40);
  noisy.noise = reports::Noise{"again", 10, 3, 1, std::nullopt, "too noisy"};
  const Comparison comparison = compared(result(20), noisy);
  const auto& overhead = rowOf(comparison, "hot_repair", "overhead_pct");
  EXPECT_EQ(overhead.change, Change::kVoid);
  EXPECT_THAT(overhead.note, HasSubstr("NEW: too noisy"));
  EXPECT_EQ(rowOf(comparison, "hot_repair", "pause_ms").change, Change::kNotDistinguishable);
  EXPECT_EQ(comparison.regressions(), 0);
}

TEST(ComparisonTest, InsideTheBandOfEqualRunsNothingIsDistinguished) {
  auto slower = result(20.8);
  EXPECT_EQ(rowOf(compared(result(20), slower), "hot_repair", "overhead_pct").change,
            Change::kWorse);
  slower.noise = reports::Noise{"again", 10, 1.8, 1.5, std::nullopt, ""};
  EXPECT_EQ(rowOf(compared(result(20), slower), "hot_repair", "overhead_pct").change,
            Change::kNotDistinguishable);
}

TEST(ComparisonTest, DifferentSettingsAreNamed) {
  auto before = result(20);
  before.environment.tcp["tcp_congestion_control"] = "cubic";
  auto now = before;
  now.environment.kernel = "Linux 6.6";
  now.environment.congestion_control = "reno";
  now.environment.tcp["tcp_congestion_control"] = "bbr";
  now.scenario["workload"]["iterations"] = 20;
  now.scenario["new"] = true;
  const Comparison comparison = compared(before, now);
  const auto& differences = comparison.scenarios[0].differences;
  EXPECT_EQ(differences.size(), 5u);
  for (const char* const path : {"environment.congestion_control (of the rails)",
                                 "environment.tcp.tcp_congestion_control (the kernel's default)"}) {
    EXPECT_THAT(differences, Contains(Field(&Comparison::Difference::what, path)));
  }
  EXPECT_THAT(differences, Contains(Field(&Comparison::Difference::what, "environment.kernel")));
  EXPECT_THAT(differences, Contains(Field(&Comparison::Difference::now, "20")));
  EXPECT_THAT(differences, Contains(Field(&Comparison::Difference::base, "")));
  EXPECT_THAT(compared(now, now).scenarios[0].differences, IsEmpty());
}

TEST(ComparisonTest, ResultsOfOneScenarioAreTakenTogether) {
  const std::vector<ScenarioResult> three(3, result(20, 1, 2));
  const auto six = result(30, 0.8);
  const Comparison comparison = compare(three, std::span(&six, 1), {"b", "n", 2});
  const auto& row = rowOf(comparison, "hot_repair", "overhead_pct");
  EXPECT_EQ(row.base.n, 6);
  EXPECT_EQ(row.change, Change::kWorse) << "with ties";
  EXPECT_EQ(comparison.scenarios[0].base_verdicts.size(), 3u);
}

}  // namespace
}  // namespace faultline::run
