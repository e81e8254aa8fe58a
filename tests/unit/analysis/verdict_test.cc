#include "harness/analysis/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analysis/expectations.h"
#include "harness/analysis/summary.h"
#include "tests/support/sample_scenario.h"

namespace faultline::run {
namespace {

using reports::RunStatus;
using reports::Verdict;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kFault =
    faults("  - {kind: port_down, target: {node: 1, rail: 0}, at: 170ms, duration: 2s}\n");

class JudgeTest : public ::testing::Test {
 protected:
  reports::Run& run(const std::string& strategy, int block) {
    for (reports::Run& candidate : runs_) {
      if (candidate.strategy == strategy && candidate.block == block) return candidate;
    }
    throw std::runtime_error("no run of " + strategy);
  }

  Judgement judged() {
    reports::ScenarioResult result;
    result.runs = runs_;
    result.interrupted = interrupted_;
    result.summary = summarise(scenario_, result.runs, 7);
    result.expectations = evaluateExpectations(scenario_, result);
    return verdictOf(scenario_, result);
  }

  void use(const scenario::Scenario& scenario) {
    scenario_ = scenario;
    runs_ = sampleRuns(scenario_);
  }

  void expect(Verdict verdict, const std::string& says) {
    const Judgement judgement = judged();
    EXPECT_STREQ(nameOf(judgement.verdict), nameOf(verdict)) << judgement.reason;
    EXPECT_THAT(judgement.reason, HasSubstr(says));
  }

  scenario::Scenario scenario_ = sampleScenario(kFault + "expect: [wrong_elements == 0]\n");
  std::vector<reports::Run> runs_ = sampleRuns(scenario_);
  bool interrupted_ = false;
};

TEST_F(JudgeTest, EverythingInOrderPasses) {
  EXPECT_EQ(judged().verdict, Verdict::kPass);
  EXPECT_EQ(judged().reason, "");
}

TEST_F(JudgeTest, AnExpectedFailureWithoutItsFaultIsInvalid) {
  use(sampleScenario(kFault + "expect: [hot_repair.status == failed]\n"));
  for (reports::Run& run : runs_) {
    if (run.strategy == "hot_repair") run.status = reports::RunStatus::kFailed;
  }
  expect(Verdict::kPass, "");
  for (reports::Run& run : runs_) {
    if (run.strategy == "hot_repair") run.evidence[0].ok = false;
  }
  expect(Verdict::kInvalid, "left no evidence");
}

TEST_F(JudgeTest, ARunThatFailedIsNoExceptionBecauseItsFaultWasNotSeen) {
  use(sampleScenario(kFault + "expect: [hot_repair.status == ok]\n"));
  run("hot_repair", 0).status = RunStatus::kFailed;
  run("hot_repair", 0).evidence[0].ok = false;
  expect(Verdict::kFail, "1 of 1 expectations does not hold, the first: hot_repair.status == ok");
  run("hot_repair", 0).status = RunStatus::kInvalid;
  expect(Verdict::kInvalid, "left no evidence");
}

TEST_F(JudgeTest, ARunWhoseEndContradictsAnExpectationIsHopeless) {
  use(sampleScenario(kFault + "expect: [hot_repair.status == ok, fail_stop.status == hung]\n"));
  reports::Run failed = run("hot_repair", 0);
  EXPECT_FALSE(isHopeless(scenario_, failed));
  failed.status = RunStatus::kFailed;
  EXPECT_TRUE(isHopeless(scenario_, failed)) << "though an expectation speaks of its end";
  reports::Run ok = run("fail_stop", 0);
  EXPECT_TRUE(isHopeless(scenario_, ok)) << "it should have hung";
  ok.status = RunStatus::kHung;
  EXPECT_FALSE(isHopeless(scenario_, ok));
  reports::Run armed = run("armed", 0);
  EXPECT_FALSE(isHopeless(scenario_, armed));
  armed.status = RunStatus::kFailed;
  EXPECT_TRUE(isHopeless(scenario_, armed)) << "nothing speaks of its end";
  armed.status = RunStatus::kOk;
  armed.wrong_elements = 1;
  EXPECT_TRUE(isHopeless(scenario_, armed));
}

TEST_F(JudgeTest, AnInvalidRunSaysWhichFaultStrategyAndBlock) {
  run("hot_repair", 1).status = RunStatus::kInvalid;
  run("hot_repair", 1).evidence[0] = {0, "peer_carrier", "the carrier stayed up", false};
  expect(Verdict::kInvalid,
         "hot_repair, block 2: port_down (node 1, rail 0) left no evidence: the carrier stayed up");
  run("hot_repair", 1).message = "port_down never triggered";
  expect(Verdict::kInvalid, "hot_repair, block 2: port_down never triggered");
}

TEST_F(JudgeTest, MissingEvidenceIsInvalidWhateverTheRunSays) {
  run("fail_stop", 0).evidence.clear();
  expect(Verdict::kInvalid, "fail_stop, block 1: port_down (node 1, rail 0) left no evidence");
  run("fail_stop", 0).faults.clear();
  expect(Verdict::kInvalid, "no fault happened, though one was due");
}

TEST_F(JudgeTest, AMissedIterationIsInvalid) {
  run("hot_repair", 0).faults[0].hit = reports::FaultHit{false, 2, 100, "it was over"};
  expect(Verdict::kInvalid, "port_down (node 1, rail 0) missed its moment: it was over");
}

TEST_F(JudgeTest, OfSeveralFaultsTheOneThatWasNotSeenIsNamed) {
  reports::Run& two = run("hot_repair", 0);
  two.faults[0].hit = reports::FaultHit{true, 2, 100, "in iteration 2"};
  reports::AppliedFault& second = two.faults.emplace_back(two.faults[0]);
  second.target.text = "node 2, rail 1";
  second.hit.reset();
  expect(Verdict::kInvalid, "port_down (node 2, rail 1) left no evidence");
  two.evidence.push_back({1, "peer_carrier", "the other end lost its carrier", true});
  EXPECT_EQ(judged().verdict, Verdict::kPass);
}

TEST_F(JudgeTest, InvalidComesBeforeEverythingButWrongData) {
  run("armed", 0).status = RunStatus::kFailed;
  run("hot_repair", 1).status = RunStatus::kInvalid;
  EXPECT_EQ(judged().verdict, Verdict::kInvalid);
  run("fault_free", 0).wrong_elements = 1;
  expect(Verdict::kFail, "fault_free, block 1: 1 of 1000 checked result elements were wrong");
}

TEST_F(JudgeTest, WrongDataOfAnInvalidRunFail) {
  run("hot_repair", 1).status = RunStatus::kInvalid;
  run("hot_repair", 1).wrong_elements = 2;
  expect(Verdict::kFail, "hot_repair, block 2: 2 of 1000 checked result elements were wrong");
  use(sampleScenario(kFault, "random"));
  run("hot_repair", 1).status = RunStatus::kInvalid;
  run("hot_repair", 1).digest = "d3";
  expect(Verdict::kFail, "hot_repair, block 2: the results differ from those of fault_free");
  run("hot_repair", 1).throughput.reset();
  EXPECT_EQ(judged().verdict, Verdict::kInvalid) << "it did not come to its end";
}

TEST_F(JudgeTest, WrongDataOfAnInterruptedExperimentFail) {
  interrupted_ = true;
  run("armed", 0).wrong_elements = 1;
  expect(Verdict::kFail, "armed, block 1: 1 of 1000 checked result elements were wrong");
}

TEST_F(JudgeTest, WrongElementsFailWithoutAnyExpectation) {
  use(sampleScenario(kFault));
  run("hot_repair", 1).wrong_elements = 3;
  expect(Verdict::kFail, "hot_repair, block 2: 3 of 1000 checked result elements were wrong");
}

TEST_F(JudgeTest, RandomDataMustGiveTheDigestOfTheSameBlock) {
  use(sampleScenario(kFault, "random"));
  for (reports::Run& each : runs_) each.checked_elements = 0;
  for (const char* strategy : {"fault_free", "armed", "fail_stop", "hot_repair"}) {
    run(strategy, 1).digest = "d2";  // other blocks may have other data
  }
  EXPECT_EQ(judged().verdict, Verdict::kPass) << judged().reason;
  run("hot_repair", 1).digest = "d1";
  expect(Verdict::kFail, "hot_repair, block 2: the results differ from those of fault_free");
  use(sampleScenario(kFault));
  run("hot_repair", 1).digest = "d3";
  EXPECT_EQ(judged().verdict, Verdict::kPass) << "integers are compared one by one";
}

TEST_F(JudgeTest, AFailedRunIsAnErrorUnlessAnExpectationDecides) {
  run("hot_repair", 0).status = RunStatus::kFailed;
  run("hot_repair", 0).message = "rank 2 was killed by signal 11";
  expect(Verdict::kError, "hot_repair, block 1: the run failed: rank 2 was killed by signal 11");
  use(sampleScenario(kFault + "expect: [armed.status == ok]\n"));
  run("hot_repair", 0).status = RunStatus::kFailed;
  EXPECT_EQ(judged().verdict, Verdict::kError) << "an expectation about another strategy";
  use(sampleScenario(kFault + "expect: [hot_repair.status == failed]\n"));
  for (const int block : {0, 1}) run("hot_repair", block).status = RunStatus::kFailed;
  EXPECT_EQ(judged().verdict, Verdict::kPass) << judged().reason;
  run("hot_repair", 1).status = RunStatus::kOk;
  expect(Verdict::kFail, "hot_repair.status == failed");
}

TEST_F(JudgeTest, FailStopHangsAndGoesOn) {
  run("fail_stop", 0).status = RunStatus::kHung;
  expect(Verdict::kError, "fail_stop, block 1: the run hung and did not go on");
  run("fail_stop", 0).restarts.push_back({});
  EXPECT_EQ(judged().verdict, Verdict::kPass) << judged().reason;
}

TEST_F(JudgeTest, UncheckedDataAreAnError) {
  run("armed", 1).checked_elements = 0;
  expect(Verdict::kError, "armed, block 2: not one result was checked");
  run("armed", 1).checked_elements = 1;
  EXPECT_EQ(judged().verdict, Verdict::kPass) << judged().reason;
}

TEST_F(JudgeTest, DataOfProgramsThatAreNotOursAreNotAskedFor) {
  const auto read = scenario::readScenario(
      "version: 1\nname: n\nworkload: {kind: command, command: {run: [a]}}\nstrategies: [armed]\n"
      "expect: [armed.exit_code == 3]\n",
      "n");
  ASSERT_TRUE(read.ok());
  reports::ScenarioResult result;
  result.runs.emplace_back().strategy = "armed";
  EXPECT_EQ(verdictOf(*read.scenario, result).verdict, Verdict::kPass);
  result.runs[0].status = RunStatus::kInvalid;
  result.runs[0].message = "metric busbw: not there";
  EXPECT_EQ(verdictOf(*read.scenario, result).reason, "armed, block 1: metric busbw: not there.");
  result.runs[0].status = RunStatus::kFailed;
  EXPECT_EQ(verdictOf(*read.scenario, result).verdict, Verdict::kPass) << "the exit code decides";
  auto unasked = *read.scenario;
  unasked.expect.clear();
  EXPECT_EQ(verdictOf(unasked, result).verdict, Verdict::kError);
}

TEST_F(JudgeTest, AMissingRunIsAnError) {
  runs_.pop_back();
  expect(Verdict::kError, "hot_repair, block 2: this run was not made");
  runs_.clear();
  expect(Verdict::kError, "Nothing was run");
}

TEST_F(JudgeTest, ABrokenExpectationBesideAnInvalidRunFails) {
  use(sampleScenario(kFault + "expect: [hot_repair.duration < 1ms, evidence.ok == true]\n"));
  run("hot_repair", 1).evidence.clear();
  expect(Verdict::kFail, "1 of 2 expectations does not hold, the first: hot_repair.duration < 1ms");
  scenario_.expect.erase(scenario_.expect.begin());
  expect(Verdict::kInvalid, "left no evidence");
}

TEST_F(JudgeTest, AnExpectationWithoutAValueIsInvalid) {
  use(sampleScenario(kFault + "expect: [hot_repair.failover_pause_ms.max <= 100]\n"));
  expect(Verdict::kInvalid, "1 of 1 expectations cannot be judged");
}

TEST_F(JudgeTest, ABrokenExpectationFails) {
  use(sampleScenario(kFault + "expect: [wrong_elements == 0, hot_repair.failovers.count >= 1]\n"));
  expect(Verdict::kFail,
         "1 of 2 expectations does not hold, the first: hot_repair.failovers.count >= 1");
}

TEST_F(JudgeTest, AnInterruptedExperimentIsAPart) {
  interrupted_ = true;
  runs_.pop_back();
  expect(Verdict::kError, "Interrupted by the user: 7 of 8 runs are here");
}

TEST_F(JudgeTest, AVoidExpectationIsInvalidAndABrokenOneIsWorse) {
  use(sampleScenario(kFault + "expect: [hot_repair.overhead_pct.median <= 30]\n"));
  for (reports::Run& run : runs_) {
    if (run.strategy == "hot_repair") run.throughput->value = 11;  // faster than without a fault
  }
  expect(Verdict::kInvalid, "1 of 1 expectations cannot be judged, the first: hot_repair.overhead");
  scenario_.expect.push_back(
      sampleScenario(kFault + "expect: [hot_repair.failovers.count >= 1]\n").expect[0]);
  expect(Verdict::kFail, "1 of 2 expectations does not hold, the first: hot_repair.failovers");
}

}  // namespace
}  // namespace faultline::run
