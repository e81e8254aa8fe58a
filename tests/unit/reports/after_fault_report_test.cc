#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "reports/renderer.h"
#include "reports/result_json.h"
#include "reports/terminal_summary.h"
#include "support/sample_result.h"

// What every report says of the time after a fault, and of blocks that are void.

namespace faultline::reports {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// hot_repair is back in its first run and never in its second.
ScenarioResult afterFaults() {
  ScenarioResult result = testing::sampleResult();
  int met = 0;
  for (Run& run : result.runs) {
    if (run.strategy != "hot_repair") continue;
    const bool back = met++ == 0;
    run.after_fault = AfterFault{.counted = "iterations",
                                 .reverted_ms = 1500,
                                 .watched_ms = 2400,
                                 .after_pct = back ? 98.25 : 61,
                                 .back_ms = {}};
    run.after_pct = run.after_fault->after_pct;
    if (back) run.back_to_95_pct_ms = run.after_fault->back_ms = 120.5;
  }
  EXPECT_GE(met, 2);
  for (Summary& row : result.summary) {
    if (row.strategy != "hot_repair") continue;
    row.after_pct = AfterSpread{.median = 79.6, .min = 61, .n = met};
    row.back_to_95_pct_ms = BackSpread{.median = {},
                                       .max = {},
                                       .n = met,
                                       .never = met - 1,
                                       .watched_ms = 2400,
                                       .max_at_least = 2400};
  }
  return result;
}

TEST(AfterFaultReportTest, ResultJsonIsReadBackAsItWas) {
  const ScenarioResult result = afterFaults();
  const Json written = toJson(result);
  const auto read = fromJson(written);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(toJson(*read), written);
  bool never = false;
  for (const Json& run : written["runs"]) {
    if (run["after_pct"].is_null()) continue;
    never = never || run["back_to_95_pct_ms"].is_null();
    EXPECT_EQ(run["after_fault"]["counted"], "iterations");
  }
  EXPECT_TRUE(never);
}

TEST(AfterFaultReportTest, CsvHasInfinityOfWhatNeverCameBack) {
  const std::string csv = makeCsvRenderer()->text(afterFaults());
  EXPECT_THAT(csv.substr(0, csv.find('\n')),
              HasSubstr(",after_pct,back_to_95_pct_ms,void_because,"));
  EXPECT_THAT(csv, AllOf(HasSubstr(",98.25,120.5,,"), HasSubstr(",61,inf,,")));
}

TEST(AfterFaultReportTest, TheTerminalNamesWhatNeverCameBack) {
  const ScenarioResult result = afterFaults();
  EXPECT_THAT(terminalSummary(result, {}),
              AllOf(HasSubstr("in the second after the last fault, % of fault_free"),
                    HasSubstr("hot_repair 79.6"), HasSubstr("not back within 2.4 s in 2 of 3")));
  EXPECT_THAT(terminalSummary(testing::sampleResult(), {}), Not(HasSubstr("after the last fault")));
}

/// No run of hot_repair went on.
ScenarioResult allEnded() {
  ScenarioResult result = afterFaults();
  for (Run& run : result.runs) {
    if (run.strategy != "hot_repair") continue;
    run.status = RunStatus::kFailed;
    run.after_fault->watched_ms = run.after_fault->after_pct = 0;
    run.after_fault->back_ms = run.back_to_95_pct_ms = std::nullopt;
    run.after_pct = 0;
  }
  for (Summary& row : result.summary) {
    if (row.strategy != "hot_repair") continue;
    row.after_pct = AfterSpread{.median = 0, .min = 0, .n = 3};
    row.back_to_95_pct_ms = BackSpread{.median = {}, .max = {}, .n = 3, .never = 3, .ended = 3};
  }
  return result;
}

TEST(AfterFaultReportTest, AJobThatEndedIsNotSaidToHaveBeenWatched) {
  const ScenarioResult result = allEnded();
  EXPECT_THAT(terminalSummary(result, {}),
              AllOf(HasSubstr("not go on in 3 of 3"), Not(HasSubstr("not back")),
                    Not(HasSubstr("hot_repair 0"))));
  EXPECT_THAT(makeMarkdownRenderer()->text(result),
              AllOf(HasSubstr("| did not go on in 3 of 3 |"), Not(HasSubstr("0.0 %, did"))));
#ifdef FAULTLINE_JUNIT
  EXPECT_THAT(makeJunitRenderer()->text(result),
              AllOf(HasSubstr("<property name=\"back_to_95_pct_ms\" value=\"did not go on\"/>"),
                    Not(HasSubstr("within 0"))));
#endif
}

TEST(AfterFaultReportTest, MarkdownHasAColumnWhereARowHasSuchASecond) {
  EXPECT_THAT(makeMarkdownRenderer()->text(afterFaults()),
              AllOf(HasSubstr("second after the fault"),
                    HasSubstr("| 79.6 %, not back within 2.4 s in 2 of 3 |")));
  EXPECT_THAT(makeMarkdownRenderer()->text(testing::sampleResult()),
              Not(HasSubstr("second after the fault")));
}

TEST(AfterFaultReportTest, PrometheusCountsThem) {
  const std::string page = makePrometheusRenderer()->text(afterFaults());
  EXPECT_THAT(page, AllOf(HasSubstr("# TYPE faultline_after_fault_ratio gauge"),
                          HasSubstr("faultline_after_fault_low_ratio{"),
                          HasSubstr("faultline_never_back_runs{"),
                          Not(HasSubstr("faultline_back_to_speed_max_seconds"))))
      << "there is no longest";
}

#ifdef FAULTLINE_JUNIT
TEST(AfterFaultReportTest, JunitHasThemAsProperties) {
  const std::string junit = makeJunitRenderer()->text(afterFaults());
  EXPECT_THAT(
      junit,
      AllOf(HasSubstr("<property name=\"after_pct\" value=\"98.25\"/>"),
            HasSubstr("<property name=\"back_to_95_pct_ms\" value=\"120.5\"/>"),
            HasSubstr("<property name=\"back_to_95_pct_ms\" value=\"not back within 2.4 s\"/>")));
}

TEST(AfterFaultReportTest, JunitRunsOfVoidBlocksAreSkippedOrInvalid) {
  ScenarioResult result = testing::sampleResult();
  result.runs[0].void_because = "other faults";
  EXPECT_THAT(makeJunitRenderer()->text(result),
              AllOf(HasSubstr("skipped=\"1\""), HasSubstr("<skipped message=\"other faults\"/>")));
  result.verdict = Verdict::kInvalid;
  EXPECT_THAT(makeJunitRenderer()->text(result),
              HasSubstr("<error type=\"invalid\" message=\"other faults\">"));
}
#endif

TEST(AfterFaultReportTest, CsvSaysWhyABlockIsVoid) {
  ScenarioResult result = testing::sampleResult();
  result.runs[0].void_because = "other faults";
  EXPECT_THAT(makeCsvRenderer()->text(result), HasSubstr(",,,other faults,"));
}

}  // namespace
}  // namespace faultline::reports
