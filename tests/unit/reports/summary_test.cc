#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "reports/headline.h"
#include "reports/tally.h"
#include "reports/terminal_summary.h"
#include "reports/text.h"
#include "reports/verdict_text.h"
#include "support/sample_result.h"

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Of all lines above the headline, which is one line however long it is.
std::size_t widestLine(const std::string& summary) {
  const std::string text = summary.substr(0, summary.rfind('\n', summary.size() - 2));
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t columns = 0;
    for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    widest = std::max(widest, columns);
  }
  return widest;
}

TEST(TallyTest, AddsUpTheRunsOfAStrategy) {
  const auto tallies = tallyByStrategy(testing::sampleResult());
  ASSERT_EQ(tallies.size(), 3u);
  EXPECT_EQ(tallies[1].strategy, "fail_stop");
  EXPECT_EQ(tallies[1].restarts, 3);
  EXPECT_EQ(tallies[1].lost_iterations, 12);
  EXPECT_EQ(tallies[2].failovers, 12);
  EXPECT_GT(tallies[2].longest_pause_ms, 20);
  EXPECT_EQ(statusWords(tallies[2]), "3 ok");
  EXPECT_EQ(tallyAll(testing::sampleResult()).runs, 9);
}

TEST(TallyTest, AStrategyWithoutASummaryIsNotForgotten) {
  ScenarioResult result = testing::sampleResult();
  result.summary.clear();
  result.runs[2].status = RunStatus::kHung;
  const auto tallies = tallyByStrategy(result);
  ASSERT_EQ(tallies.size(), 3u);
  EXPECT_EQ(statusWords(tallies[2]), "2 ok, 1 hung");
  EXPECT_EQ(statusWords({}), "-");
}

TEST(VerdictTextTest, SaysWhatHappenedInWords) {
  ScenarioResult result = testing::sampleResult();
  EXPECT_EQ(explainVerdict(result).headline, "All 4 expectations hold");

  result.verdict = Verdict::kFail;
  result.expectations[1].pass = false;
  result.expectations[1].value = 0;
  VerdictText text = explainVerdict(result);
  EXPECT_EQ(text.headline, "1 of 4 expectations does not hold");
  ASSERT_EQ(text.broken.size(), 1u);
  EXPECT_EQ(text.broken[0], "Expected hot_repair.failovers.count >= 1, found 0.");

  result.verdict = Verdict::kInvalid;
  result.runs[2].status = RunStatus::kInvalid;
  result.runs[2].message = "the other end kept its carrier";
  text = explainVerdict(result);
  EXPECT_THAT(text.headline, HasSubstr("prove nothing"));
  EXPECT_EQ(text.reasons[0], "hot_repair, block 1: the other end kept its carrier");

  result.interrupted = true;
  EXPECT_EQ(explainVerdict(result).headline, "Interrupted after 9 runs: this is a partial result");
  EXPECT_EQ(explainVerdict({}).headline, "The bench could not finish");
}

TEST(VerdictTextTest, AFailureIsSaidOnceAndThenListed) {
  ScenarioResult result = testing::sampleResult();
  result.verdict = Verdict::kFail;
  result.reason = "1 of 4 expectations does not hold, the first: hot_repair.failovers.count >= 1.";
  result.expectations[1].pass = false;
  result.expectations[1].value = 0;
  result.expectations[1].message = "The rails were whole.";
  const std::string text = terminalSummary(result, {});
  const auto times = [&](const std::string& words) {
    int count = 0;
    for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(times("FAILS"), 1);
  EXPECT_EQ(times("The rails were whole."), 1) << "beside its expectation";
  EXPECT_EQ(times("Expected hot_repair"), 0);
  EXPECT_EQ(times(", the first: "), 0);
  EXPECT_EQ(times("1 of 4 expectations does not hold"), 1) << "in the last line";
  EXPECT_THAT(text, HasSubstr("\nFAIL\n"));
  result.reason = "hot_repair, block 2: the results differ.";
  EXPECT_THAT(terminalSummary(result, {}), HasSubstr("the results differ"));
}

TEST(VerdictTextTest, WhatAStrategyDidIsSaidWithItsName) {
  ScenarioResult result = testing::sampleResult();
  for (reports::Run& run : result.runs) run.restarts.clear();
  result.runs[1].status = RunStatus::kHung;
  result.runs[1].restarts.resize(1);
  result.runs[1].restarts[0].lost_iterations = 3;
  const std::string name = result.runs[1].strategy;
  const auto reasons = explainVerdict(result).reasons;
  const auto named = std::ranges::count_if(reasons, [&](const std::string& reason) {
    return reason.starts_with(name + ": ") && (reason.find("1 hung") != std::string::npos ||
                                               reason.find("3 iterations") != std::string::npos);
  });
  EXPECT_EQ(named, 2) << ::testing::PrintToString(reasons);
}

TEST(VerdictTextTest, ObservationsAreCountedInProperWords) {
  ScenarioResult result = testing::sampleResult();
  result.runs.resize(2);
  result.runs[1].evidence.resize(1);
  const auto said = [&] { return explainVerdict(result).reasons[1]; };
  EXPECT_EQ(said(),
            "1 fault was injected; 1 independent observation shows that it really happened.");
  result.runs[1].evidence.push_back(result.runs[1].evidence[0]);
  EXPECT_EQ(
      said(),
      "1 fault was injected; all of 2 independent observations show that it really happened.");
  result.runs[1].evidence[1].ok = false;
  EXPECT_EQ(said(),
            "1 fault was injected; 1 of 2 independent observations shows that it really happened.");
}

TEST(VerdictTextTest, AFailureDoesNotHideInvalidRuns) {
  ScenarioResult result = testing::sampleResult();
  result.verdict = Verdict::kFail;
  result.runs[2].status = RunStatus::kInvalid;
  result.runs[2].message = "the other end kept its carrier";
  const VerdictText text = explainVerdict(result);
  ASSERT_FALSE(text.reasons.empty());
  EXPECT_EQ(text.reasons.back(), "hot_repair, block 1: the other end kept its carrier");
}

TEST(VerdictTextTest, GroupsDigits) {
  EXPECT_EQ(groupDigits(0), "0");
  EXPECT_EQ(groupDigits(999), "999");
  EXPECT_EQ(groupDigits(1000), "1 000");
  EXPECT_EQ(groupDigits(-1234567), "-1 234 567");
}

TEST(TerminalSummaryTest, ShowsStrategiesVerdictExpectationsAndThePlaceOfTheReport) {
  const std::string text = terminalSummary(testing::sampleResult(), {.report_dir = "out/x"});
  EXPECT_THAT(text, HasSubstr("scale 1000: all times and bytes are so many times smaller"));
  EXPECT_THAT(text, HasSubstr("5.3 MB (really 5.3 GB) an iteration; 10.0 % of a fault-free"));
  for (const char* part : {"fault_free", "fail_stop", "hot_repair", "3 ok", "3/12", "PASS  All 4",
                           "holds  wrong_elements == 0", "report: out/x/report.html"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("\033")));
  EXPECT_THAT(terminalSummary(testing::sampleResult(), {.colour = true, .report_dir = ""}),
              HasSubstr("\033[32mPASS"));
}

TEST(TerminalSummaryTest, TheLastLineIsTheHeadline) {
  const ScenarioResult result = testing::sampleResult();
  const std::string text = terminalSummary(result, {.report_dir = "out/x"});
  EXPECT_THAT(text, ::testing::EndsWith("\ntook 61 s in all\n\n" + headline(result) + "\n"));
}

TEST(TerminalSummaryTest, MarksARowThatIsBetterThanPossible) {
  ScenarioResult result = testing::sampleResult();
  result.summary[2].bound_pct = 7;
  result.summary[2].mis_measured = true;
  result.summary[2].note = "mis-measured: more than 1 % better than possible";
  const std::string text = terminalSummary(result);
  EXPECT_THAT(text, HasSubstr(" 7.0! "));
  EXPECT_THAT(text, HasSubstr("! hot_repair: mis-measured: more than 1 % better than possible"));
}

TEST(TerminalSummaryTest, SaysWhatProgramsToldAndThatTheirDataAreNotKnown) {
  ScenarioResult result = testing::sampleResult();
  for (reports::Run& run : result.runs) {
    run.checked_elements = 0;
    run.digest.clear();
    if (run.strategy != "hot_repair") continue;
    run.processes.resize(2);
    run.processes[1].exit_code = 3;
    run.metrics["busbw"] = {4.0 + run.block, "GB/s"};
  }
  const std::string text = terminalSummary(result, {});
  EXPECT_THAT(text, HasSubstr("hot_repair: exit codes 0 3; busbw 5.00 (4.00 to 6.00) GB/s"));
  EXPECT_THAT(text, HasSubstr("Checked elements: none."));
  EXPECT_THAT(text, Not(HasSubstr("fault_free: exit codes")));
}

TEST(TerminalSummaryTest, SaysWhatBecameOfRequests) {
  ScenarioResult result = testing::sampleResult();
  result.runs[1].requests.resize(1);
  RateRow& rate = result.summary[2].rates.emplace_back();
  rate = {.qps = 8, .requests = 60, .finished = 40, .late = 15, .lost = 5, .redone = 3};
  rate.goodput = 8 * 40 / 60.0;
  rate.ttft_ms = {.p50 = 12.25, .p95 = 40, .p99 = {}, .max = 50, .n = 59};
  rate.burst_below_requests = 108;
  rate.ttft_overhead_pct = Overhead{1.5, Interval{0.5, 2.5}, 2.5, true, 10};
  rate.tpot_overhead_pct = Overhead{-0.25, Interval{-1, 0.5}, 1.5, false, 10};
  result.summary[2].knee_qps = 8;
  result.summary[0].rates.resize(1);
  result.summary[0].knee_qps = 16;
  std::string text = terminalSummary(result, {});
  EXPECT_LE(widestLine(text), 100u);
  std::ranges::replace(text, '\n', ' ');
  while (text.find("  ") != std::string::npos) text.replace(text.find("  "), 2, " ");
  EXPECT_THAT(text, HasSubstr("hot_repair, 8/s: 60 requests, 40 finished, 15 late, 5 lost, 3 "
                              "redone; goodput 5.33/s; p50/p95/p99 of TTFT 12.2/40.0/- ms (n 59)"));
  EXPECT_THAT(text,
              HasSubstr("(n 0); too few requests for -: p99 from 300 on; a burst, not a rate"));
  EXPECT_THAT(text, HasSubstr("set `requests` to 108 or more; medians"));
  EXPECT_THAT(text, HasSubstr("medians against fault_free (blocks: 10): TTFT 1.5 % [0.5, 2.5] %, "
                              "TPOT -0.2 % [-1.0, 0.5] % ="));
  EXPECT_THAT(text, HasSubstr("hot_repair: less than 90 % of the requests are finished in time "
                              "from 8/s on (fault_free: from 16/s on)"));
  EXPECT_THAT(text, HasSubstr("3 restarts, with 12 requests that had to be begun again."));
  EXPECT_THAT(text, Not(HasSubstr("checkpoint")));
}

TEST(TerminalSummaryTest, OfTailsItSaysWhatTheyCostWhereBothAreKnown) {
  ScenarioResult result = testing::sampleResult();
  RateRow& rate = result.summary[2].rates.emplace_back();
  rate.ttft_p95_overhead_pct = Overhead{.median = 4};
  EXPECT_THAT(terminalSummary(result, {}), Not(HasSubstr("p95: TTFT")));
  rate.tpot_p95_overhead_pct = Overhead{.median = 5};
  EXPECT_THAT(terminalSummary(result, {}), HasSubstr("p95: TTFT"));
}

TEST(TerminalSummaryTest, SaysWhyAPercentileIsMissing) {
  EXPECT_EQ(missingPercentiles({}), "") << "nobody was served";
  EXPECT_EQ(missingPercentiles({.p50 = 1, .p95 = {}, .p99 = {}, .max = 2, .n = 59}),
            "p95 from 60 on, p99 from 300 on");
  EXPECT_EQ(missingPercentiles({.p50 = 1, .p95 = 2, .p99 = {}, .max = 2, .n = 60}),
            "p99 from 300 on");
  EXPECT_EQ(missingPercentiles({.p50 = 1, .p95 = 2, .p99 = 2, .max = 2, .n = 300}), "");
}

TEST(TerminalSummaryTest, FitsAHundredColumns) {
  ScenarioResult wide = testing::sampleResult();
  wide.summary[1].overhead_pct = Overhead{12345.6, Interval{11111.1, 13333.3}};
  wide.summary[1].origin = Origin::kModelled;
  wide.summary[1].throughput = Quantity{1.5e12, std::string(200, 'u')};
  wide.runs[1].status = RunStatus::kFailed;
  wide.summary[1].note = std::string(300, 'n');
  EXPECT_LE(widestLine(terminalSummary(wide)), 100u);
  EXPECT_LE(widestLine(terminalSummary(testing::hostileResult())), 100u);
  EXPECT_LE(widestLine(terminalSummary({})), 100u);
}

TEST(TerminalSummaryTest, AModelledRowIsMarkedHoweverLongItsNameIs) {
  ScenarioResult result = testing::sampleResult();
  Summary& row = result.summary.emplace_back();
  row.strategy = "a_name_that_is_too_long";
  row.origin = Origin::kModelled;
  row.overhead_pct = Overhead{12.5};
  const std::string text = terminalSummary(result);
  const std::string line = text.substr(text.find("a_name_that"));
  EXPECT_THAT(line.substr(0, line.find('\n')), HasSubstr(" modelled "));
  EXPECT_THAT(text, HasSubstr("* modelled, not measured"));
  EXPECT_THAT(text, HasSubstr("a_name_that_i~ is a_name_that_is_too_long*"));
  EXPECT_THAT(terminalSummary(testing::sampleResult()), Not(HasSubstr("~ is")));
}

TEST(TerminalSummaryTest, OfAModelledServerItSaysWhatOneFaultCosts) {
  ScenarioResult result = testing::sampleResult();
  Summary& row = result.summary.emplace_back();
  row.strategy = "kv_replicate";
  row.origin = Origin::kModelled;
  row.fault_cost = FaultCost{245.4, 31.3};
  const std::string text = terminalSummary(result);
  const std::string line = text.substr(text.find("kv_replicate"));
  EXPECT_THAT(line.substr(0, line.find('\n')), HasSubstr(" 245 s of 31 req "));
  EXPECT_THAT(text, HasSubstr("what one fault costs by a model"));
  EXPECT_THAT(terminalSummary(testing::sampleResult()), Not(HasSubstr("by a model")));
  EXPECT_EQ(faultCostText({0.256, 2}), "0.26 s of 2 req");
  EXPECT_EQ(faultCostText({68 * 60, {}}), "68 min of the job");
  EXPECT_EQ(faultCostText({59, {}}), "59 s of the job");
}

TEST(TerminalSummaryTest, CarriesNoControlCharactersOfTheResult) {
  ScenarioResult result = testing::sampleResult();
  result.reason = "\033]0;owned\007 text";
  EXPECT_THAT(terminalSummary(result), Not(HasSubstr("\033")));
}

TEST(CleanTextTest, ReplacesWhatIsNotText) {
  EXPECT_EQ(cleanText("plain ä € 𝄞"), "plain ä € 𝄞");
  EXPECT_EQ(cleanText(std::string("a\0b", 3)), "a\uFFFDb");
  EXPECT_EQ(cleanText("\xff"), "\uFFFD");
  EXPECT_EQ(cleanText("\xc0\xaf"), "\uFFFD\uFFFD") << "overlong";
  EXPECT_EQ(cleanText("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD") << "surrogate";
  EXPECT_EQ(cleanText("cut \xe2\x82"), "cut \uFFFD\uFFFD");
}

TEST(TerminalSummaryTest, VoidIsNeitherHeldNorFailed) {
  ScenarioResult result = testing::sampleResult();
  result.verdict = Verdict::kInvalid;
  result.expectations[3].pass = false;
  result.expectations[3].is_void = true;
  const std::string text = terminalSummary(result, {});
  EXPECT_THAT(text, HasSubstr("VOID   hot_repair.overhead_pct.median <= 30"));
  EXPECT_THAT(text, Not(HasSubstr("FAILS")));
  EXPECT_THAT(text, HasSubstr("does not decide all expectations"));
}

TEST(TerminalSummaryTest, SaysWhatIsNoise) {
  ScenarioResult result = testing::sampleResult();
  result.noise = Noise{.strategy = "again",
                       .pairs = 12,
                       .band_pct = 0.91,
                       .median_band_pct = 0.42,
                       .drift_pct = -0.2,
                       .void_because = ""};
  result.summary[2].overhead_pct->ci95 = Interval{-0.1, 0.3};
  result.summary[2].overhead_pct->distinguishable = false;
  std::string text = terminalSummary(result, {});
  EXPECT_THAT(text, HasSubstr("] ="));
  EXPECT_THAT(text, HasSubstr("= not distinguishable from 0"));
  EXPECT_THAT(text, HasSubstr("noise: 12 pairs of equal runs (fault_free, again) differ by up to "
                              "0.91 %"));
  result.noise->void_because = "too noisy";
  text = terminalSummary(result, {});
  EXPECT_THAT(text, HasSubstr("! noise: 12 pairs"));
  EXPECT_THAT(text, HasSubstr("too noisy"));
  EXPECT_LE(widestLine(text), 100u);
}

}  // namespace
}  // namespace faultline::reports
