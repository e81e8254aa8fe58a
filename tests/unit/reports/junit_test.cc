#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <tinyxml2.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.h"
#include "reports/renderer.h"
#include "reports/result_json.h"
#include "support/sample_result.h"

namespace faultline::reports {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Junit {
  tinyxml2::XMLDocument document;
  int tests = 0;
  int failures = 0;
  int errors = 0;
  int skipped = 0;
};

void parseJunit(const ScenarioResult& result, Junit& junit) {
  const std::string text = makeJunitRenderer()->text(result);
  ASSERT_EQ(junit.document.Parse(text.c_str()), tinyxml2::XML_SUCCESS) << text;
  for (const auto* suite = junit.document.FirstChildElement("testsuites")->FirstChildElement();
       suite != nullptr; suite = suite->NextSiblingElement()) {
    int cases = 0;
    int skipped = 0;
    for (const auto* one = suite->FirstChildElement(); one != nullptr;
         one = one->NextSiblingElement()) {
      ++cases;
      junit.failures += one->FirstChildElement("failure") != nullptr ? 1 : 0;
      junit.errors += one->FirstChildElement("error") != nullptr ? 1 : 0;
      skipped += one->FirstChildElement("skipped") != nullptr ? 1 : 0;
    }
    EXPECT_EQ(suite->IntAttribute("tests"), cases);
    EXPECT_EQ(suite->IntAttribute("skipped"), skipped);
    junit.tests += cases;
    junit.skipped += skipped;
  }
  const auto* const root = junit.document.FirstChildElement("testsuites");
  EXPECT_EQ(root->IntAttribute("tests"), junit.tests);
  EXPECT_EQ(root->IntAttribute("failures"), junit.failures);
  EXPECT_EQ(root->IntAttribute("errors"), junit.errors);
  EXPECT_EQ(root->IntAttribute("skipped"), junit.skipped);
}

TEST(JunitTest, HasACasePerExpectationAndPerRun) {
  Junit junit;
  parseJunit(testing::sampleResult(), junit);
  EXPECT_EQ(junit.tests, 4 + 1 + 9) << "expectations, the verdict, runs";
  EXPECT_EQ(junit.failures + junit.errors, 0);
}

TEST(JunitTest, FailedExpectationsAreFailures) {
  ScenarioResult result = testing::sampleResult();
  result.verdict = Verdict::kFail;
  result.expectations[2].pass = false;
  Junit junit;
  parseJunit(result, junit);
  EXPECT_EQ(junit.failures, 1);
  EXPECT_EQ(junit.errors, 0);
}

TEST(JunitTest, AnExpectationWithoutAValueIsAnErrorAndNoFailure) {
  ScenarioResult result = testing::sampleResult();
  result.verdict = Verdict::kFail;
  result.expectations[0].pass = false;
  result.expectations[1] = {"hot_repair.failover_pause_ms.p99 <= 20", Json(nullptr), false, ""};
  result.expectations[2].pass = false;
  result.expectations[2].is_void = true;
  Junit junit;
  parseJunit(result, junit);
  EXPECT_EQ(junit.failures, 1) << "what was measured, and is wrong";
  EXPECT_EQ(junit.errors, 2) << "what has no value, and what is void";
}

TEST(JunitTest, EverySuiteSaysWhenAndEveryCaseHowLongAndOfWhichScenario) {
  Junit junit;
  parseJunit(testing::sampleResult(), junit);
  const auto* const root = junit.document.FirstChildElement("testsuites");
  EXPECT_STREQ(root->Attribute("timestamp"), "2026-05-04T09:30:00Z");
  EXPECT_STREQ(root->Attribute("time"), "61.400");
  for (const auto* suite = root->FirstChildElement(); suite != nullptr;
       suite = suite->NextSiblingElement()) {
    EXPECT_STREQ(suite->Attribute("timestamp"), "2026-05-04T09:30:00Z");
    EXPECT_STREQ(suite->Attribute("file"), "scenarios/quickstart.yaml");
    for (const auto* one = suite->FirstChildElement(); one != nullptr;
         one = one->NextSiblingElement()) {
      EXPECT_NE(one->Attribute("time"), nullptr);
      EXPECT_STREQ(one->Attribute("file"), "scenarios/quickstart.yaml");
    }
  }
  const auto* const run = root->LastChildElement()->FirstChildElement();
  EXPECT_GT(run->DoubleAttribute("time"), 1) << "seconds that the run took";
}

TEST(JunitTest, OfAResultWithoutAFileOrATimeNothingIsMadeUp) {
  ScenarioResult result = testing::sampleResult();
  result.scenario_file.clear();
  result.started_at.clear();
  const std::string text = makeJunitRenderer()->text(result);
  EXPECT_THAT(text, Not(HasSubstr("file=")));
  EXPECT_THAT(text, Not(HasSubstr("timestamp=")));
}

TEST(JunitTest, WhatWasNotMadeIsSkipped) {
  ScenarioResult result = testing::sampleResult();
  result.scenario["expect"] = {"wrong_elements == 0", "hot_repair.failovers.count >= 1"};
  result.verdict = Verdict::kError;
  result.interrupted = true;
  result.expectations.clear();
  result.runs.resize(4);
  Junit junit;
  parseJunit(result, junit);
  EXPECT_EQ(junit.skipped, 2 + 5) << "expectations, and runs of nine";
  EXPECT_THAT(makeJunitRenderer()->text(result), HasSubstr("interrupted"));
  Junit whole;
  parseJunit(testing::sampleResult(), whole);
  EXPECT_EQ(whole.skipped, 0);
}

TEST(JunitTest, InvalidAndErrorAreErrors) {
  ScenarioResult result = testing::sampleResult();
  result.verdict = Verdict::kInvalid;
  result.runs[2].status = RunStatus::kInvalid;
  Junit invalid;
  parseJunit(result, invalid);
  EXPECT_EQ(invalid.errors, 2) << "the run and the verdict";
  EXPECT_EQ(invalid.failures, 0);

  result = {};
  Junit error;
  parseJunit(result, error);
  EXPECT_EQ(error.errors, 1);
}

TEST(JunitTest, AResultThatIsNotGreenIsNeverAGreenFile) {
  ScenarioResult result = testing::sampleResult();
  result.verdict = Verdict::kFail;  // with nothing else that shows it
  Junit fail;
  parseJunit(result, fail);
  EXPECT_EQ(fail.failures, 1);
  result.verdict = Verdict::kPass;
  result.interrupted = true;
  Junit interrupted;
  parseJunit(result, interrupted);
  EXPECT_EQ(interrupted.errors, 1);
}

TEST(JunitTest, TheRunThatWasInterruptedIsAnErrorAndNoFailure) {
  ScenarioResult result = testing::sampleResult();
  result.verdict = Verdict::kError;
  result.interrupted = true;
  result.expectations.clear();
  result.runs.back().status = RunStatus::kFailed;
  Junit junit;
  parseJunit(result, junit);
  EXPECT_EQ(junit.failures, 0);
  EXPECT_EQ(junit.errors, 2) << "the run and the verdict";
  result.runs.front().status = RunStatus::kFailed;
  Junit before;
  parseJunit(result, before);
  EXPECT_EQ(before.failures, 1) << "one that had ended before";
}

TEST(JunitTest, BlocksAreCountedFromOneAsEverywhere) {
  EXPECT_THAT(makeJunitRenderer()->text(testing::sampleResult()),
              AllOf(HasSubstr("hot_repair block 3"), Not(HasSubstr("block 0"))));
}

TEST(JunitTest, AHangWithARestartIsWhatFailStopDoes) {
  ScenarioResult result = testing::sampleResult();
  result.runs[1].status = RunStatus::kHung;
  Junit restarted;
  parseJunit(result, restarted);
  EXPECT_EQ(restarted.failures, 0);
  result.runs[1].restarts.clear();
  result.verdict = Verdict::kError;
  Junit hung;
  parseJunit(result, hung);
  EXPECT_EQ(hung.failures, 1);
}

TEST(JunitTest, ARunThatFailsAsItMustIsNoFailureWhereTheScenarioPasses) {
  for (const RunStatus end : {RunStatus::kFailed, RunStatus::kHung}) {
    ScenarioResult result = testing::sampleResult();
    result.runs[1].status = end;
    result.runs[1].restarts.clear();
    Junit passes;
    parseJunit(result, passes);
    EXPECT_EQ(passes.failures + passes.errors, 0);
    result.verdict = Verdict::kFail;
    Junit fails;
    parseJunit(result, fails);
    EXPECT_EQ(fails.failures, 1);
  }
}

TEST(JunitTest, HostileTextIsEscaped) {
  Junit junit;
  parseJunit(testing::hostileResult(), junit);
  EXPECT_EQ(junit.failures, 1);
  EXPECT_EQ(junit.errors, 1) << "one has no value";
  const std::string text = makeJunitRenderer()->text(testing::hostileResult());
  EXPECT_THAT(text, Not(HasSubstr("<script>")));
  for (const char c : text)
    EXPECT_TRUE(c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace
}  // namespace faultline::reports
