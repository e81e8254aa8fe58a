#include "reports/report_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/sample_result.h"

// What goes into the page of a result, and what is left out of it.

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string notesOf(const Json& view) {
  std::string text;
  for (const Json& note : view["notes"]) text += note.get<std::string>() + "\n";
  return text;
}

TEST(ReportViewTest, ASweepIsOneListInsteadOfTheRowsOfItsRuns) {
  const Json view = reportView(testing::hugeSweepResult(2), {});
  EXPECT_EQ(view["call_count"], 7 * 25);
  ASSERT_EQ(view["calls"].size(), 7u * 25);
  for (const Json& run : view["runs"]) EXPECT_FALSE(run.contains("collectives"));
  const Json& call = view["calls"][14];
  EXPECT_EQ(call["operation"], "all_reduce");
  EXPECT_EQ(call["size_bytes"], 16 << 20);
  ASSERT_EQ(call["strategies"].size(), 5u);
  const Json& free = call["strategies"][0];
  EXPECT_EQ(free["strategy"], "fault_free");
  EXPECT_EQ(free["p50_ms"], 364.822) << "six digits";
  EXPECT_EQ(free["n"], 2 * 5);
  EXPECT_FALSE(free.contains("kept"));
  EXPECT_FALSE(free.contains("wrong_elements")) << "what is nothing is not written";
  const Json& hot = call["strategies"][1];
  EXPECT_EQ(hot["strategy"], "hot_repair");
  EXPECT_EQ(hot["kept"], 0.5);
  EXPECT_EQ(hot["time_over_bound"], 1.75);
  EXPECT_THAT(notesOf(view), Not(HasSubstr("Not shown")));
}

TEST(ReportViewTest, TheListOfCallsEndsWithAWholeOneAndSaysSo) {
  const Json view = reportView(testing::hugeSweepResult(1), {.calls = 12});
  EXPECT_EQ(view["call_count"], 7 * 25);
  ASSERT_EQ(view["calls"].size(), 2u);
  EXPECT_EQ(view["calls"][1]["strategies"].size(), 5u);
  EXPECT_THAT(notesOf(view),
              HasSubstr("Not shown here: calls (173); result.json has all of them."));
}

TEST(ReportViewTest, ALargeSweepKeepsItsCurves) {
  constexpr std::size_t kBudget = 700'000;
  const std::string text = reportViewText(testing::hugeSweepResult(10), kBudget);
  EXPECT_LE(text.size(), kBudget);
  const Json view = Json::parse(text);
  EXPECT_EQ(view["runs"].size(), 50u);
  EXPECT_EQ(view["calls"].size(), 7u * 25);
  std::set<int> blocks;
  for (const Json& run : view["runs"]) {
    if (!run["iterations"].is_null()) blocks.insert(run["block"].get<int>());
  }
  EXPECT_GT(blocks.size(), 1u);
}

TEST(ReportViewTest, LongListsOfProgramsAreCutAndThePageSaysSo) {
  ScenarioResult result = testing::sampleResult();
  reports::Run& run = result.runs[0];
  run.processes.resize(10);
  run.errors.resize(1000);
  for (int i = 0; i < 20; ++i) run.metrics[fmt::format("m{:02}", i)] = {1.5 * i, "GB/s"};
  result.runs[1].metrics["a"] = {1, ""};
  const Json view = reportView(result, {.events = 4, .metrics = 3});
  const Json& first = view["runs"][0];
  EXPECT_EQ(first["processes"].size(), 4u);
  EXPECT_EQ(first["process_count"], 10);
  EXPECT_EQ(first["metrics"].size(), 2u) << "the first three names of all runs: a, m00, m01";
  EXPECT_TRUE(first["metrics"].contains("m01"));
  EXPECT_EQ(view["runs"][1]["metrics"].size(), 1u);
  EXPECT_FALSE(first.contains("errors")) << "the page has never shown them";
  EXPECT_THAT(
      notesOf(view),
      HasSubstr("Not shown here: exit codes (6), metrics (18); result.json has all of them."));

  const Json whole = reportView(result, {});
  EXPECT_EQ(whole["runs"][0]["processes"].size(), 10u);
  EXPECT_EQ(whole["runs"][0]["metrics"].size(), 20u);
  EXPECT_THAT(notesOf(whole), Not(HasSubstr("Not shown")));
}

TEST(ReportViewTest, ServedRequestsAreCountedWhereTheirLastTokenCame) {
  ScenarioResult result = testing::sampleResult();
  const auto request = [](double arrival, std::optional<double> took) {
    return ServedRequest{.arrival_ms = arrival, .e2e_ms = took};
  };
  result.runs[0].requests = {request(0.2, 0.3), request(3, std::nullopt)};
  result.runs[1].requests = {request(0, 10), request(50, 30), request(60, 20.5)};
  result.runs[2].requests = {request(3, std::nullopt)};
  const Json view = reportView(result, {});
  EXPECT_TRUE(view["runs"][2]["iterations"]["count"].empty()) << "none was answered";
  int answered = 0;
  for (const Json& count : view["runs"][0]["iterations"]["count"]) answered += count.get<int>();
  EXPECT_EQ(answered, 1);
  const Json& columns = view["runs"][1]["iterations"];
  ASSERT_EQ(columns["count"].size(), 41u) << "80.5 ms in bins of 2 ms, the narrowest of at most 80";
  EXPECT_EQ(columns["count"][5], 1);
  EXPECT_EQ(columns["count"][40], 2);
  EXPECT_EQ(columns["start_ms"][40], 80);
  EXPECT_EQ(columns["ms"][40], 2);
}

TEST(ReportViewTest, OfAThinnedSeriesNoByteIsLost) {
  ScenarioResult result = testing::sampleResult();
  result.runs[0].rail_series = {{.node = 1, .rail = 2, .bin_ms = 10, .tx_bytes = {1, 2, 3, 4, 5}}};
  const Json view = reportView(result, {.points = 3});
  ASSERT_EQ(view["runs"][0]["rail_series"].size(), 1u);
  const Json& series = view["runs"][0]["rail_series"][0];
  EXPECT_EQ(series["tx_bytes"], Json::array({3, 7, 5}));
  EXPECT_EQ(series["bin_ms"], 20);
}

TEST(ReportViewTest, RestartsAndNewCommunicatorsAreCutToo) {
  ScenarioResult result = testing::sampleResult();
  reports::Run& run = result.runs[1];
  run.restarts.resize(7);
  run.shrinks.resize(6);
  run.rebuilds.resize(5);
  const Json view = reportView(result, {.events = 4});
  for (const char* list : {"restarts", "shrinks", "rebuilds"}) {
    EXPECT_EQ(view["runs"][1][list].size(), 4u) << list;
  }
  EXPECT_THAT(notesOf(view), HasSubstr("restarts and communicators made anew (6)"));
}

TEST(ReportViewTest, ThousandsOfProcessesAndMetricsStayWithinTheBudget) {
  constexpr std::size_t kBudget = 700'000;
  ScenarioResult result = testing::sampleResult();
  for (reports::Run& run : result.runs) {
    run.processes.resize(5000);
    run.errors.resize(5000);
    for (int i = 0; i < 5000; ++i) run.metrics[fmt::format("metric_{}", i)] = {1.0 / (i + 3), "s"};
  }
  const std::string text = reportViewText(result, kBudget);
  EXPECT_LE(text.size(), kBudget);
  EXPECT_THAT(notesOf(Json::parse(text)), HasSubstr("Not shown here: exit codes ("));
}

}  // namespace
}  // namespace faultline::reports
