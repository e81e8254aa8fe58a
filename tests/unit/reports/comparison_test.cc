#include "reports/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Comparison sample(const std::string& name = "quickstart") {
  Comparison comparison;
  comparison.base = "yesterday";
  comparison.now = "today";
  comparison.tolerance_pct = 2;
  comparison.significance = 0.01;
  comparison.min_values = 5;
  comparison.scenarios = {{name, {"pass"}, {"fail"}, {{"environment.kernel", "\"a\"", ""}}}};
  const Comparison::Side base{10, 12.345, Interval{12.1, 12.6}};
  const Comparison::Side now{10, 10.5, Interval{10.2, 10.9}};
  Comparison::Row row{.scenario = name,
                      .strategy = name == "quickstart" ? "hot_repair" : name,
                      .metric = "throughput",
                      .unit = "iterations/s",
                      .base = base,
                      .now = now,
                      .difference = -14.9,
                      .difference_unit = "%",
                      .p = 0.0003,
                      .change = Change::kWorse,
                      .regression = true};
  comparison.rows.push_back(row);
  row.metric = "overhead_pct";
  row.base = {};
  row.difference = row.p = std::nullopt;
  row.change = Change::kMissingInBase;
  row.regression = false;
  row.note = name;
  comparison.rows.push_back(row);
  return comparison;
}

TEST(ComparisonReportTest, TextSaysItAllInAHundredColumns) {
  const std::string text = comparisonText(sample());
  EXPECT_THAT(text, HasSubstr("quickstart: pass -> fail"));
  EXPECT_THAT(text, HasSubstr("environment.kernel: \"a\" -> (not there)"));
  EXPECT_THAT(text, HasSubstr("12.35 [12.10, 12.60]"));
  EXPECT_THAT(text, HasSubstr("-14.9 %  0.0003 WORSE"));
  EXPECT_THAT(text, HasSubstr("missing in BASE"));
  EXPECT_THAT(text, HasSubstr("1 regression beyond 2 %, 1 missing in BASE, 1 passed and fails now "
                              "(quickstart)\n"));
  EXPECT_THAT(text, HasSubstr("tolerance, 2 % (percentages: 2 points)"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(ComparisonReportTest, AScenarioOfOneSideIsNamedAndComparedWithNothing) {
  Comparison comparison = sample();
  comparison.scenarios[0].base_verdicts.clear();
  const std::string text = comparisonText(comparison);
  EXPECT_THAT(text, HasSubstr("quickstart: no result -> fail"));
  EXPECT_THAT(text, HasSubstr("only in NEW: nothing to compare it with"));
  EXPECT_THAT(text, Not(HasSubstr("hot_repair"))) << "rows that all say the same";
}

TEST(ComparisonReportTest, NamesAreOnOneLineOfText) {
  Comparison comparison = sample();
  comparison.base = "a\tb\rc\nd";
  EXPECT_THAT(comparisonText(comparison), HasSubstr("BASE: a b c d\nNEW:  today\n"));
}

TEST(ComparisonReportTest, JsonHasWhatTheTableHas) {
  const Json json = comparisonJson(sample());
  EXPECT_EQ(json["schema"], "faultline.comparison/1");
  EXPECT_EQ(json["regressions"], 1);
  EXPECT_EQ(json["rows"][0]["verdict"], "worse");
  EXPECT_EQ(json["rows"][0]["base"]["ci95"], Json::array({12.1, 12.6}));
  EXPECT_EQ(json["rows"][1]["base"]["median"], nullptr);
  EXPECT_EQ(json["rows"][1]["verdict"], "missing in BASE");
}

TEST(ComparisonReportTest, PageIsWholeAndHostileTextStaysText) {
  EXPECT_THAT(comparisonHtml(sample()), HasSubstr("REGRESSION"));
  const std::string page = comparisonHtml(sample("<script>x</script> {{head}}"));
  EXPECT_THAT(page, Not(HasSubstr("<script>x")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;x"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(ComparisonReportTest, AHistoryIsDrawn) {
  Comparison comparison = sample();
  EXPECT_THAT(comparisonHtml(comparison), Not(HasSubstr("<svg")));
  Comparison::Row& row = comparison.rows[0];
  row.nights = {{"2026-05-01T01:00:00Z", "a<b", "pass", row.base, false},
                {"2026-05-02T01:00:00Z", "c", "pass", {}, true},  // no values: no mark
                {"2026-05-03T01:00:00Z", "d", "fail", row.now, true}};
  comparison.title = "Nightly trend";
  comparison.scenarios[0].base_verdicts = {"pass", "invalid", "pass"};
  const std::string page = comparisonHtml(comparison);
  EXPECT_THAT(page, HasSubstr("Faultline · Nightly trend"));
  EXPECT_THAT(page, HasSubstr("aria-label=\"3 nights\""));
  EXPECT_THAT(page, HasSubstr("width=\"32\"")) << "11 px from night to night, 5 px at each edge";
  EXPECT_THAT(page, HasSubstr("circle class=\"night old\" cx=\"5.0\""));
  EXPECT_THAT(page, HasSubstr("circle class=\"newest\" cx=\"27.0\""));
  EXPECT_THAT(page, HasSubstr("2026-05-01T01:00:00Z: 12.35 [12.10, 12.60] iterations/s, n = 10"));
  EXPECT_THAT(page, HasSubstr("a&lt;b"));
  EXPECT_THAT(page, Not(HasSubstr("2026-05-02")));
  EXPECT_THAT(page, HasSubstr("1 invalid, 2 pass"));
  const Json json = comparisonJson(comparison)["rows"][0]["nights"];
  EXPECT_EQ(json.size(), 3u);
  EXPECT_EQ(json[2]["median"], 10.5);
}

TEST(ComparisonReportTest, NightsWithoutAnIntervalHaveAPlaceInTheDrawing) {
  Comparison comparison = sample();
  Comparison::Side lower, upper;
  lower.median = 10;
  upper.median = 20;
  comparison.rows[0].nights = {{"2026-05-01T01:00:00Z", "a", "pass", lower, true},
                               {"2026-05-02T01:00:00Z", "b", "pass", upper, true}};
  const std::string page = comparisonHtml(comparison);
  EXPECT_THAT(page, HasSubstr("cx=\"5.0\" cy=\"39.0\""));
  EXPECT_THAT(page, HasSubstr("cx=\"16.0\" cy=\"5.0\""));
}

TEST(ComparisonReportTest, NothingComparedIsSaidSo) {
  Comparison comparison = sample();
  comparison.rows.erase(comparison.rows.begin());
  EXPECT_EQ(comparison.judged(), 0);
  EXPECT_THAT(comparison.verdict(), HasSubstr("no row could be compared"));
  EXPECT_THAT(comparisonHtml(comparison), HasSubstr("FAILS NOW")) << "that is known all the same";
  comparison.scenarios[0].new_verdicts = {"pass"};
  EXPECT_THAT(comparisonHtml(comparison), HasSubstr("VOID"));
  comparison.rows.clear();
  EXPECT_EQ(comparison.verdict(), "nothing to compare");
}

}  // namespace
}  // namespace faultline::reports
