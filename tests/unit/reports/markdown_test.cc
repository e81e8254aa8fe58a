#include "reports/markdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "reports/renderer.h"
#include "support/sample_result.h"

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Cells of all rows of tables: every row must have as many as its heading.
void expectWholeTables(const std::string& text) {
  std::istringstream lines(text);
  std::ptrdiff_t bars = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('|')) {
      bars = 0;
      continue;
    }
    const auto found = std::ranges::count(line, '|');
    if (bars == 0) bars = found;
    EXPECT_EQ(found, bars) << line;
  }
}

TEST(MarkdownTest, TextOfUsersStaysText) {
  EXPECT_EQ(markdownText("a|b\nc"), "a&#124;b c");
  EXPECT_EQ(markdownText("<script>&"), "&lt;script&gt;&amp;");
  EXPECT_EQ(markdownText("[x](y) *b* _i_ `c`"), "\\[x\\](y) \\*b\\* \\_i\\_ \\`c\\`");
  EXPECT_EQ(markdownText("@someone #12"), "@<!-- -->someone #<!-- -->12");
  EXPECT_EQ(markdownText("https://a.b"), "https:<!-- -->//a.b");
  EXPECT_EQ(markdownText("- a"), "\\- a");
  EXPECT_EQ(markdownText("\xff"), "\xEF\xBF\xBD");
}

TEST(MarkdownTest, CodeOfUsersStaysCode) {
  EXPECT_EQ(markdownCode("a_b.c <= 3 @x"), "`a_b.c <= 3 @x`");
  EXPECT_EQ(markdownCode("`|</code>"), "<code>&#96;&#124;&#60;/code&#62;</code>");
  EXPECT_EQ(markdownCode(""), "");
}

TEST(MarkdownTest, ALongTextIsCutBetweenCharacters) {
  std::string text(399, 'a');
  text += "\xC3\xA4\xC3\xA4";
  EXPECT_EQ(markdownText(text), std::string(399, 'a') + "…");
}

TEST(MarkdownTest, AResultSaysVerdictStrategiesAndExpectations) {
  const std::string text = markdownSummary(testing::sampleResult());
  EXPECT_THAT(text, StartsWith("### PASS: quickstart\n"));
  EXPECT_THAT(text, HasSubstr("All 4 expectations hold."));
  EXPECT_THAT(text, HasSubstr("| `hot_repair` | 3 ok | +"));
  EXPECT_THAT(text, HasSubstr("| `wrong_elements == 0` | 0 | holds |"));
  EXPECT_THAT(text, HasSubstr("`report.html`"));
  expectWholeTables(text);
}

TEST(MarkdownTest, WhatFailsComesFirst) {
  ScenarioResult result = testing::sampleResult();
  result.verdict = Verdict::kFail;
  result.expectations[3].pass = false;
  result.expectations[2].is_void = true;
  result.expectations[2].pass = false;
  const std::string text = markdownSummary(result);
  EXPECT_THAT(text, StartsWith("### FAIL: quickstart\n"));
  const std::size_t said = text.find("1 of 4 expectations does not hold");
  ASSERT_NE(said, std::string::npos);
  EXPECT_EQ(text.find("1 of 4 expectations does not hold", said + 1), std::string::npos);
  EXPECT_LT(text.find("**fails**"), text.find("**void**"));
  EXPECT_LT(text.find("**void**"), text.find("holds |"));
}

TEST(MarkdownTest, OfASweepTheCallsComeFirstAndNothingIsAveraged) {
  ScenarioResult result = testing::sampleResult();
  for (reports::Run& run : result.runs) {
    for (const std::int64_t mib : {1, 4}) {
      CollectiveRow& row = run.collectives.emplace_back();
      row.operation = "all_reduce";
      row.size_bytes = mib << 20;
      row.n = 3;
      row.p50_ms = 10 * static_cast<double>(mib) * (run.faulted ? 2 : 1);
      row.busbw = 0.2;
    }
  }
  const std::string text = markdownSummary(result);
  EXPECT_THAT(text, HasSubstr("| 4 MiB | 0.2 | 0.2 (50 %) | 0.2 (50 %) |"));
  EXPECT_LT(text.find("4 MiB"), text.find("| strategy |"));
  EXPECT_THAT(text, Not(HasSubstr("overhead |")));
  expectWholeTables(text);
}

TEST(MarkdownTest, HostileTextBreaksNoTableAndFitsIntoAComment) {
  ScenarioResult result = testing::hostileResult();
  for (int i = 0; i < 500; ++i) {
    result.expectations.push_back(
        {std::string(1000, '@'), std::string(1000, '#'), false, std::string(1000, '|')});
  }
  const std::string text = markdownSummary(result);
  EXPECT_EQ(text.find("<script"), std::string::npos);
  EXPECT_EQ(text.find("<img"), std::string::npos);
  EXPECT_LT(text.size(), 65536u);
  expectWholeTables(text);
}

TEST(MarkdownTest, ItIsAFileOfEveryResult) {
  const auto renderers = allRenderers();
  EXPECT_TRUE(std::ranges::any_of(renderers, [](const auto& renderer) {
    return std::string(renderer->fileName()) == "summary.md";
  }));
  for (const ScenarioResult& empty : {ScenarioResult{}}) {
    EXPECT_THAT(markdownSummary(empty), StartsWith("### ERROR: unnamed"));
  }
}

TEST(MarkdownTest, OfManyResultsTheWorstComesFirst) {
  ScenarioResult fails = testing::sampleResult();
  fails.scenario["name"] = "other";
  fails.verdict = Verdict::kFail;
  fails.expectations[0].pass = false;
  ConfusionMatrix matrix;
  matrix.columns = {"local_nic", "none"};
  ConfusionMatrix::Row& row = matrix.rows.emplace_back();
  row.fault = "port_down";
  row.end = "own";
  row.expected = "local_nic";
  row.counts = {2, 1};
  row.right = {true, false};
  matrix.unproved = 1;
  const std::string text = markdownSummary(matrix, {testing::sampleResult(), fails});
  EXPECT_THAT(text, StartsWith("### 1 of 2 results pass\n"));
  EXPECT_LT(text.find("other"), text.find("quickstart"));
  EXPECT_THAT(text, HasSubstr("| `port_down` | own | local\\_nic | 2 | **1** | 66.7 |"));
  EXPECT_THAT(text, HasSubstr(" 1 left no evidence and do not count."));
  expectWholeTables(text);
}

TEST(MarkdownTest, OfManyResultsTheFirstHundredAreShown) {
  std::vector<ScenarioResult> results(100);
  EXPECT_THAT(markdownSummary(ConfusionMatrix{}, results), Not(HasSubstr("The first ")));
  results.emplace_back();
  EXPECT_THAT(markdownSummary(ConfusionMatrix{}, results), HasSubstr("\nThe first 100 of 101.\n"));
}

TEST(MarkdownTest, OfTwoResultsChangesStandAboveTheRest) {
  Comparison comparison;
  comparison.base = "main";
  comparison.now = "this";
  comparison.scenarios = {{"quickstart", {"pass"}, {"pass"}, {{"environment.kernel", "a", "b"}}}};
  for (const Change change : {Change::kNotDistinguishable, Change::kWorse}) {
    Comparison::Row& row = comparison.rows.emplace_back();
    row.scenario = "quickstart";
    row.strategy = "hot_repair";
    row.metric = "throughput";
    row.unit = "iterations/s";
    row.base = {.n = 6, .median = 12.3};
    row.now = {.n = 6, .median = 10.5};
    row.difference = -14.9;
    row.difference_unit = "%";
    row.change = change;
    row.regression = change == Change::kWorse;
  }
  const std::string text = markdownSummary(comparison);
  EXPECT_THAT(text, StartsWith("### Comparison: worse\n"));
  EXPECT_LT(text.find("**worse**"), text.find("<details>"));
  EXPECT_LT(text.find("<details>"), text.find("not distinguishable |"));
  EXPECT_THAT(text, HasSubstr("`environment.kernel`"));
  expectWholeTables(text);
}

TEST(MarkdownTest, AChangeNamesItsScenarioWhereThereAreTwo) {
  Comparison comparison;
  comparison.scenarios = {{"quickstart", {"pass"}, {"pass"}, {}}};
  Comparison::Row& row = comparison.rows.emplace_back();
  row.scenario = "quickstart";
  row.strategy = "hot_repair";
  row.metric = "throughput";
  row.change = Change::kWorse;
  EXPECT_THAT(markdownSummary(comparison), HasSubstr("\n| `hot_repair` | `throughput` |"));
  comparison.scenarios.push_back({"other", {"pass"}, {"pass"}, {}});
  const std::string text = markdownSummary(comparison);
  EXPECT_THAT(text, HasSubstr("\n| scenario | strategy | metric |"));
  EXPECT_THAT(text, HasSubstr("\n| `quickstart` | `hot_repair` | `throughput` |"));
  expectWholeTables(text);
}

TEST(MarkdownTest, OfManyChangesTheFirstSixtyAreShown) {
  Comparison comparison;
  comparison.scenarios = {{"quickstart", {"pass"}, {"pass"}, {}}};
  constexpr int kShown = 60;
  for (int i = 0; i < kShown + 1; ++i) {
    Comparison::Row& row = comparison.rows.emplace_back();
    row.scenario = "quickstart";
    row.metric = "metric" + std::to_string(i);
    row.change = Change::kWorse;
  }
  const std::string text = markdownSummary(comparison);
  EXPECT_THAT(text, HasSubstr("metric59"));
  EXPECT_THAT(text, Not(HasSubstr("metric60")));
}

}  // namespace
}  // namespace faultline::reports
