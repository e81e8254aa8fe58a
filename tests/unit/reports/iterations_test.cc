#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>

#include "reports/renderer.h"
#include "reports/result.h"

// iterations.csv.

namespace faultline::reports {
namespace {

ScenarioResult twoRuns() {
  ScenarioResult result;
  result.scenario["name"] = "night, \"cold\"";
  result.seed = 7;
  for (const char* const strategy : {"a", "=b"}) {
    Run& run = result.runs.emplace_back();
    run.strategy = strategy;
    run.block = static_cast<int>(result.runs.size()) - 1;
    run.iterations = {{.index = 0, .start_ms = 0, .ms = 10},
                      {.index = 1, .start_ms = 10, .ms = 20, .attempts = 3, .exposed_ms = 1.25},
                      {.index = 2, .start_ms = 30, .ms = 10}};
  }
  return result;
}

AppliedFault strike(double begin, std::optional<double> end) {
  AppliedFault fault;
  fault.start_ms = begin;
  fault.end_ms = end;
  return fault;
}

TEST(IterationsTest, HasARowPerIterationOfEachRun) {
  EXPECT_EQ(makeIterationsRenderer()->text(twoRuns()),
            "scenario,seed,strategy,block,arm,status,iteration,start_ms,ms,attempts,exposed_ms,"
            "faults_on\n"
            "\"night, \"\"cold\"\"\",7,a,0,plain,ok,0,0,10,1,,0\n"
            "\"night, \"\"cold\"\"\",7,a,0,plain,ok,1,10,20,3,1.25,0\n"
            "\"night, \"\"cold\"\"\",7,a,0,plain,ok,2,30,10,1,,0\n"
            "\"night, \"\"cold\"\"\",7,'=b,1,plain,ok,0,0,10,1,,0\n"
            "\"night, \"\"cold\"\"\",7,'=b,1,plain,ok,1,10,20,3,1.25,0\n"
            "\"night, \"\"cold\"\"\",7,'=b,1,plain,ok,2,30,10,1,,0\n");
}

TEST(IterationsTest, CountsTheStrikesThatShareTheTimeOfAnIteration) {
  const auto counted = [](const AppliedFault& fault) {
    ScenarioResult result = twoRuns();
    result.runs[0].faults = {fault};
    std::string last;
    const std::string text = makeIterationsRenderer()->text(result);
    for (std::size_t line = 1, at = text.find('\n'); line <= 3; ++line) {
      at = text.find('\n', at + 1);
      last += text[at - 1];
    }
    return last;
  };
  EXPECT_EQ(counted(strike(12, 15)), "010") << "within one";
  EXPECT_EQ(counted(strike(5, 35)), "111");
  EXPECT_EQ(counted(strike(12, std::nullopt)), "011") << "until the end";
  EXPECT_EQ(counted(strike(10, 30)), "010") << "their ends meet and share nothing";
  EXPECT_EQ(counted(strike(-5, 0)), "000");
  EXPECT_EQ(counted(strike(40, 50)), "000");
}

TEST(IterationsTest, IsNotWrittenWhereNoRunHasIterations) {
  ScenarioResult result = twoRuns();
  EXPECT_TRUE(makeIterationsRenderer()->applies(result));
  result.runs[1].iterations.clear();
  EXPECT_TRUE(makeIterationsRenderer()->applies(result)) << "one has";
  result.runs[0].iterations.clear();
  EXPECT_FALSE(makeIterationsRenderer()->applies(result));
}

}  // namespace
}  // namespace faultline::reports
