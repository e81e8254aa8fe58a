#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <sstream>

#include "reports/collectives_text.h"
#include "reports/renderer.h"
#include "reports/result_json.h"
#include "reports/sweep_table.h"

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CollectiveRow allReduce(std::int64_t bytes, bool inPlace, double ms) {
  CollectiveRow row;
  row.operation = "all_reduce";
  row.size_bytes = bytes;
  row.count = bytes / 4;
  row.dtype = "f32";
  row.op = "sum";
  row.in_place = inPlace;
  row.n = 5;
  row.p50_ms = row.min_ms = row.max_ms = ms;
  row.algbw = static_cast<double>(bytes) / ms / 1e6;
  row.busbw = 1.5 * row.algbw;
  row.checked_elements = 20;
  return row;
}

ScenarioResult resultOf(std::vector<CollectiveRow> rows) {
  ScenarioResult result;
  result.scenario = {{"name", "sweep"}};
  Run& run = result.runs.emplace_back();
  run.strategy = "balance";
  run.collectives = std::move(rows);
  run.goodput_mbit = 382.5;
  return result;
}

TEST(CollectivesTextTest, HasTheColumnsOfNcclTests) {
  CollectiveRow shift = allReduce(4000, false, 2);
  shift.operation = "send_recv";
  shift.op = "";
  shift.wrong_elements = 3;
  const std::string text = collectivesText(
      resultOf({allReduce(1048576, false, 20), allReduce(1048576, true, 40), std::move(shift)}));
  std::vector<std::vector<std::string>> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    lines.emplace_back(std::istream_iterator<std::string>(words),
                       std::istream_iterator<std::string>());
  }
  using Words = std::vector<std::string>;
  ASSERT_EQ(lines.size(), 2u) << text;
  EXPECT_EQ(lines[0], (Words{"1048576", "262144", "float", "sum", "-1", "20000.00", "0.0524",
                             "0.0786", "0", "40000.00", "0.0262", "0.0393", "0"}));
  EXPECT_EQ(lines[1], (Words{"4000", "1000", "float", "none", "-1", "2000.00", "0.0020", "0.0030",
                             "3", "N/A", "N/A", "N/A", "N/A"}));
  EXPECT_THAT(text, HasSubstr("# sweep: balance, block 1\n"));
  EXPECT_THAT(text, HasSubstr("out-of-place"));
  EXPECT_THAT(text, HasSubstr("# Out of bounds values : 3 FAILED\n"));
}

TEST(CollectivesTextTest, IsAFileOnlyWhereThereAreCalls) {
  const auto renderer = makeCollectivesRenderer();
  EXPECT_TRUE(renderer->applies(resultOf({allReduce(4, false, 1)})));
  EXPECT_FALSE(renderer->applies(resultOf({})));
  EXPECT_EQ(collectivesText(resultOf({})), "");
}

TEST(SweepTableTest, ComparesTheMediansOfTheRuns) {
  ScenarioResult result;
  result.scenario = {{"name", "half"}};
  for (const double ms : {10.0, 30.0, 20.0}) {
    reports::Run& run = result.runs.emplace_back();
    run.strategy = "balance";
    CollectiveRow& row = run.collectives.emplace_back(allReduce(8 << 20, false, ms));
    row.send = {1, 0.5, 1, 1};
    row.receive = {1, 0.5, 1, 0.25};
    row.time_over_ideal = ms / 10;
    row.bound = 1.333;
    row.time_over_bound = ms / 13.33;
  }
  reports::Run& other = result.runs.emplace_back();
  other.strategy = "optcc";
  other.collectives.push_back(result.runs.front().collectives.front());
  other.collectives.front().mis_measured = true;
  other.collectives.push_back(allReduce(1024, true, 0.5));
  other.collectives.back().latency_only = true;
  other.collectives.back().time_over_bound = 7;
  const std::vector<ScenarioResult> results{result};
  const std::string table = sweepTable(results);
  EXPECT_THAT(table, HasSubstr("| half | 1: 0.50, 3: 1.00 out 0.25 in | all_reduce f32 | 8388608 | "
                               "balance | 15 | 20.00 | 2.000 | 1.333 | 1.500 |  |  |  |  | 0 |\n"
                               "| half | 1: 0.50, 3: 1.00 out 0.25 in | all_reduce f32 | 8388608 | "
                               "optcc | 5 | 10.00 | 1.000 | 1.333 | 0.750 mis-measured |"));
  EXPECT_THAT(table,
              HasSubstr("| changing, or not known | all_reduce f32 in place | 1024 | optcc | "
                        "5 | 0.50 |  |  | latency |"));
  EXPECT_THAT(table, Not(HasSubstr("7.000")));
}

TEST(SweepTableTest, SaysWhichCallsDoNotCount) {
  CollectiveRow settled = allReduce(8 << 20, false, 10), early = allReduce(16 << 20, false, 20);
  settled.left_out = 2;
  settled.time_over_bound = early.time_over_bound = 1.02;
  early.unsettled = true;
  const std::vector<ScenarioResult> results{resultOf({settled, early})};
  const std::string table = sweepTable(results);
  EXPECT_THAT(table, HasSubstr("| 8388608 | balance | 5 of 7 | 10.00 |  |  | 1.020 |"));
  EXPECT_THAT(table, HasSubstr("| 16777216 | balance | 5 | 20.00 |  |  | 1.020 unsettled |"));
}

TEST(SweepTableTest, ATimeThatIsNotKnownIsNotZero) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::vector<ScenarioResult> results{resultOf({allReduce(8 << 20, false, none)})};
  EXPECT_THAT(sweepTable(results), HasSubstr("| 8388608 | balance | 5 |  |  |  |  |"));
}

TEST(SweepTableTest, TheFormulaIsNextToTheModel) {
  CollectiveRow row = allReduce(8 << 20, false, 10);
  row.model = 1.75;
  row.time_over_model = 1.01;
  row.formula = 1.72;
  row.time_over_formula = 1.03;
  const std::vector<ScenarioResult> results{resultOf({row})};
  const std::string table = sweepTable(results);
  EXPECT_THAT(table, HasSubstr("| model | / model | formula | / formula | wrong |"));
  EXPECT_THAT(table, HasSubstr("| 1.750 | 1.010 | 1.720 | 1.030 | 0 |"));
}

TEST(SweepResultTest, ComesBackAsItWas) {
  CollectiveRow row = allReduce(4096, true, 1.5);
  row.send = {1, 0.5};
  row.receive = {1, 1};
  row.ideal_ms = 1.25;
  row.time_over_ideal = 1.2;
  row.bound = 1.1;
  row.time_over_bound = 1.09;
  row.model = 1.15;
  row.time_over_model = 1.04;
  row.formula = 1.7;
  row.formula_chunks = 35;
  row.time_over_formula = 1.02;
  row.latency_only = row.mis_measured = row.unsettled = true;
  row.left_out = 3;
  const std::string text = toJsonText(resultOf({row}));
  const auto again = parseResult(text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(toJsonText(*again), text);
  EXPECT_EQ(again->runs.front().collectives.front().receive, row.receive);
  EXPECT_EQ(again->runs.front().goodput_mbit, 382.5);
}

}  // namespace
}  // namespace faultline::reports
