#include "harness/analysis/strikes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/analysis/expectations.h"
#include "harness/analysis/metrics.h"
#include "harness/analysis/verdict.h"
#include "tests/support/sample_scenario.h"

namespace faultline::run {
namespace {

using reports::AppliedFault;
using reports::StrikeDifference;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A run of 10 s whose port flapped from 1 s on for 1 s.
reports::Run flapped(const std::string& strategy, int block, std::int64_t losses,
                     double throughput = 10) {
  reports::Run run = sampleRun(strategy, block, throughput);
  run.arm = reports::Arm::kFaulted;
  run.faulted = true;
  run.duration_ms = 10'000;
  AppliedFault& fault = run.faults.emplace_back();
  fault.kind = "port_flap";
  fault.target.text = "node 1, rail 0";
  fault.trigger = "at 1s";
  fault.start_ms = 1000;
  fault.end_ms = 2000;
  fault.asked.start_ms = 1000;
  fault.asked.ms = 1000;
  fault.asked.losses = 2;
  fault.losses = losses;
  run.evidence.push_back({0, "losses of carrier", "seen", true});
  return run;
}

std::vector<std::string> whats(const std::vector<StrikeDifference>& differences) {
  std::vector<std::string> list;
  for (const StrikeDifference& one : differences) list.push_back(one.what);
  return list;
}

/// What two runs of a block differ in when `change` is made to the second.
template <typename Change>
std::vector<StrikeDifference> afterChange(Change change) {
  std::vector<reports::Run> runs{flapped("balance", 0, 2), flapped("hot_repair", 0, 2)};
  change(runs[1]);
  return compareStrikes(runs);
}

TEST(StrikesTest, EqualStrikesDoNotDiffer) {
  EXPECT_THAT(afterChange([](reports::Run&) {}), IsEmpty());
  EXPECT_THAT(compareStrikes({}), IsEmpty());
}

TEST(StrikesTest, OneLossMoreVoidsTheBlock) {
  const auto differences = afterChange([](reports::Run& run) { run.faults[0].losses = 3; });
  ASSERT_THAT(differences, SizeIs(1));
  EXPECT_TRUE(differences[0].voids);
  EXPECT_EQ(differences[0].block, 0);
  EXPECT_EQ(differences[0].fault, "port_flap (node 1, rail 0), at 1s");
  EXPECT_EQ(differences[0].detail,
            "the number of losses was 2 with balance, 3 with hot_repair; it was to be 2");
}

TEST(StrikesTest, LossesThatWereNotAskedForVoidItAlsoWhereAllHadThem) {
  const std::vector<reports::Run> both{flapped("balance", 0, 3), flapped("hot_repair", 0, 3)};
  EXPECT_THAT(whats(compareStrikes(both)), ElementsAre("losses"));
  const std::vector<reports::Run> alone{flapped("balance", 0, 1)};
  EXPECT_THAT(whats(compareStrikes(alone)), ElementsAre("losses"));
}

TEST(StrikesTest, LossesUntilTheRunEndsDependOnItsLength) {
  std::vector<reports::Run> runs{flapped("balance", 0, 20), flapped("hot_repair", 0, 25)};
  for (reports::Run& run : runs) {
    run.faults[0].asked.ms.reset();
    run.faults[0].asked.losses.reset();
  }
  EXPECT_THAT(compareStrikes(runs), IsEmpty());
  // The same where a run ends in the middle of a fault.
  std::vector<reports::Run> cut{flapped("balance", 0, 2), flapped("hot_repair", 0, 1)};
  cut[1].duration_ms = 1400;
  cut[1].faults[0].end_ms = 1401;
  EXPECT_THAT(compareStrikes(cut), IsEmpty());
}

TEST(StrikesTest, AMissingStrikeVoidsTheBlock) {
  auto differences = afterChange([](reports::Run& run) { run.faults.clear(); });
  ASSERT_THAT(differences, SizeIs(1));
  EXPECT_TRUE(differences[0].voids);
  EXPECT_EQ(differences[0].detail, "it did not strike with hot_repair");
  // Also one that another strategy alone had: another target is another strike.
  differences =
      afterChange([](reports::Run& run) { run.faults[0].target.text = "node 2, rail 0"; });
  EXPECT_THAT(whats(differences), ElementsAre("strikes", "strikes"));
  // And one of several that are equal.
  differences = afterChange([](reports::Run& run) { run.faults.push_back(run.faults[0]); });
  EXPECT_THAT(whats(differences), ElementsAre("strikes"));
}

TEST(StrikesTest, TimesThatDifferByMoreThanTheToleranceWarn) {
  EXPECT_THAT(afterChange([](reports::Run& run) { run.faults[0].start_ms += 50; }), IsEmpty());
  const auto late = afterChange([](reports::Run& run) {
    run.faults[0].start_ms += 51;
    *run.faults[0].end_ms += 51;
  });
  ASSERT_THAT(whats(late), ElementsAre("start"));
  EXPECT_FALSE(late[0].voids);
  EXPECT_EQ(late[0].detail, "it came at 1000 ms with balance, 1051 ms with hot_repair");
  // What comes after something else comes when that does.
  EXPECT_THAT(afterChange([](reports::Run& run) {
                run.faults[0].asked.start_ms.reset();
                run.faults[0].start_ms += 500;
                *run.faults[0].end_ms += 500;
              }),
              IsEmpty());
}

TEST(StrikesTest, LengthsThatDifferByATenthWarn) {
  EXPECT_THAT(afterChange([](reports::Run& run) { *run.faults[0].end_ms += 100; }), IsEmpty());
  EXPECT_THAT(whats(afterChange([](reports::Run& run) { *run.faults[0].end_ms += 101; })),
              ElementsAre("length"));
  EXPECT_THAT(whats(afterChange([](reports::Run& run) { *run.faults[0].end_ms -= 101; })),
              ElementsAre("length"))
      << "it ended long before its run";
}

TEST(StrikesTest, ShortFaultsHaveATolerancesOfTheirOwn) {
  for (const auto& [more, found] : {std::pair{50.0, 0}, std::pair{51.0, 1}}) {
    std::vector<reports::Run> runs{flapped("balance", 0, 1), flapped("hot_repair", 0, 1)};
    for (reports::Run& run : runs) {
      run.faults[0].asked.ms = 20;
      run.faults[0].asked.losses = 1;
      run.faults[0].end_ms = 1020;
    }
    *runs[1].faults[0].end_ms += more;
    EXPECT_EQ(std::ssize(compareStrikes(runs)), found) << more;
  }
}

TEST(StrikesTest, AFaultBeforeTheStartLastsFromTheStartOn) {
  EXPECT_THAT(afterChange([](reports::Run& run) {
                run.faults[0].asked.start_ms.reset();
                run.faults[0].start_ms = -700;
                run.faults[0].end_ms = 1000;
              }),
              IsEmpty());
}

void strikeInIteration(reports::Run& run, int iteration, double progress) {
  run.faults[0].asked.start_ms.reset();
  run.faults[0].asked.iteration = 5;
  run.faults[0].asked.progress_pct = 50;
  run.faults[0].hit = {true, iteration, progress, ""};
}

TEST(StrikesTest, OtherPlacesInAnIterationWarn) {
  const auto with = [](int iteration, double progress) {
    std::vector<reports::Run> runs{flapped("balance", 0, 2), flapped("hot_repair", 0, 2)};
    strikeInIteration(runs[0], 5, 51);
    strikeInIteration(runs[1], iteration, progress);
    return whats(compareStrikes(runs));
  };
  EXPECT_THAT(with(5, 61), IsEmpty());
  EXPECT_THAT(with(5, 61.1), ElementsAre("progress"));
  EXPECT_THAT(with(6, 51), ElementsAre("iteration"));
}

TEST(StrikesTest, BlocksAreComparedEachForItself) {
  std::vector<reports::Run> runs{flapped("balance", 0, 2), flapped("hot_repair", 0, 2),
                                 flapped("balance", 1, 2), flapped("hot_repair", 1, 3)};
  for (reports::Run& run : runs) run.faults[0].asked.losses.reset();
  const auto differences = compareStrikes(runs);
  ASSERT_THAT(differences, SizeIs(1));
  EXPECT_EQ(differences[0].block, 1);
}

TEST(StrikesTest, RunsThatDidNotComeToTheirEndAreNotCompared) {
  for (const auto status :
       {reports::RunStatus::kFailed, reports::RunStatus::kInvalid, reports::RunStatus::kHung}) {
    EXPECT_THAT(afterChange([&](reports::Run& run) {
                  run.status = status;
                  run.faults.clear();
                }),
                IsEmpty());
  }
  EXPECT_THAT(afterChange([](reports::Run& run) {
                run.status = reports::RunStatus::kHung;
                run.restarts.emplace_back();  // it went on
                run.faults.clear();
              }),
              SizeIs(1));
}

reports::ScenarioResult judged(std::vector<reports::Run> runs, const std::string& expect = "") {
  const scenario::Scenario scenario =
      sampleScenario("repeat: 2\nfaults:\n" + std::string(kPortDown) +
                     (expect.empty() ? "" : "expect: [" + expect + "]\n"));
  reports::ScenarioResult result;
  result.runs = std::move(runs);
  for (int block = 0; block < 2; ++block) {
    for (const char* const spared : {"fault_free", "armed"}) {
      result.runs.push_back(sampleRun(spared, block, 10));
    }
  }
  result.strike_differences = compareStrikes(result.runs);
  markVoidBlocks(result.strike_differences, result.runs);
  result.summary = summarise(scenario, result.runs, 7);
  result.expectations = evaluateExpectations(scenario, result);
  const Judgement judgement = verdictOf(scenario, result);
  result.verdict = judgement.verdict;
  result.reason = judgement.reason;
  return result;
}

const reports::Summary& rowOf(const reports::ScenarioResult& result, const std::string& name) {
  return *std::ranges::find(result.summary, name, &reports::Summary::strategy);
}

TEST(StrikesTest, AVoidBlockIsLeftOutOfTheSummary) {
  const auto result =
      judged({flapped("fail_stop", 0, 2, 8), flapped("hot_repair", 0, 3, 1),
              flapped("fail_stop", 1, 2, 8), flapped("hot_repair", 1, 2, 8)},
             "hot_repair.throughput.median >= 8, hot_repair.iterations.count == 10");
  EXPECT_EQ(rowOf(result, "hot_repair").n, 1);
  EXPECT_DOUBLE_EQ(rowOf(result, "hot_repair").throughput->value, 8);
  EXPECT_DOUBLE_EQ(rowOf(result, "hot_repair").overhead_pct->median, 25);
  EXPECT_EQ(rowOf(result, "fail_stop").n, 1) << "all strategies of the block";
  EXPECT_EQ(rowOf(result, "fault_free").n, 1);
  EXPECT_EQ(result.verdict, reports::Verdict::kPass) << result.reason;
  EXPECT_THAT(inWords(result.strike_differences),
              ElementsAre(HasSubstr("block 1 is void and left out of all comparisons")));
}

TEST(StrikesTest, SpeedsOfAVoidBlockAreInNoExpectation) {
  std::vector<reports::Run> runs{flapped("fail_stop", 0, 2), flapped("hot_repair", 0, 3),
                                 flapped("fail_stop", 1, 2), flapped("hot_repair", 1, 2)};
  for (reports::Iteration& iteration : runs[1].iterations) iteration.ms = 500;
  const auto result = judged(std::move(runs), "hot_repair.iteration_ms.max <= 60");
  EXPECT_TRUE(result.expectations[0].pass);
}

TEST(StrikesTest, WithoutABlockThatCountsTheResultIsInvalid) {
  const auto result = judged({flapped("fail_stop", 0, 2), flapped("hot_repair", 0, 3),
                              flapped("fail_stop", 1, 1), flapped("hot_repair", 1, 2)});
  EXPECT_EQ(result.verdict, reports::Verdict::kInvalid);
  EXPECT_THAT(result.reason, HasSubstr("No block is left to compare. Block 1: the strategies of "
                                       "this block did not have the same fault: port_flap"));
}

TEST(StrikesTest, AWarningChangesNoVerdict) {
  std::vector<reports::Run> runs{flapped("fail_stop", 0, 2), flapped("hot_repair", 0, 2),
                                 flapped("fail_stop", 1, 2), flapped("hot_repair", 1, 2)};
  *runs[0].faults[0].end_ms += 300;
  const auto result = judged(std::move(runs));
  EXPECT_EQ(result.verdict, reports::Verdict::kPass) << result.reason;
  EXPECT_EQ(rowOf(result, "hot_repair").n, 2);
  EXPECT_THAT(inWords(result.strike_differences),
              ElementsAre(HasSubstr("block 1 had strikes that differ, and counts: port_flap")));
}

}  // namespace
}  // namespace faultline::run
