#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "reports/renderer.h"
#include "support/sample_result.h"

// results.csv.

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Cells of RFC 4180 text.
std::vector<std::vector<std::string>> parseCsv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& cell = rows.back().back();
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      cell += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      rows.back().emplace_back();
    } else if (!quoted && c == '\n') {
      rows.emplace_back(1);
    } else {
      cell += c;
    }
  }
  rows.pop_back();
  return rows;
}

TEST(CsvTest, HasARowPerRun) {
  const auto rows = parseCsv(makeCsvRenderer()->text(testing::sampleResult()));
  ASSERT_EQ(rows.size(), 10u);
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(rows[0].begin(), rows[0].end(), name) -
                                    rows[0].begin());
  };
  EXPECT_EQ(rows[3][column("strategy")], "hot_repair");
  EXPECT_EQ(rows[3][column("arm")], "faulted");
  EXPECT_EQ(rows[3][column("failovers")], "4");
  EXPECT_EQ(rows[3][column("evidence_ok")], "2");
  EXPECT_EQ(rows[1][column("failover_pause_ms_max")], "") << "there was no failover";
  EXPECT_EQ(rows[2][column("restarts")], "1");
  EXPECT_EQ(rows[3][column("plans")], "2");
  EXPECT_EQ(rows[3][column("planned_algorithm")], "optcc");
  EXPECT_EQ(rows[2][column("planned_algorithm")], "");
  EXPECT_EQ(rows[2][column("lost_iterations")], "4");
}

TEST(CsvTest, BytesAreThoseOfAllRails) {
  ScenarioResult result = testing::sampleResult();
  result.runs[0].rails = {{.tx_bytes = 1000, .rx_bytes = 500}, {.tx_bytes = 200, .rx_bytes = 70}};
  result.runs[1].rails.clear();
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  const auto cell = [&](std::size_t row, const std::string& name) {
    const auto at = std::ranges::find(rows[0], name) - rows[0].begin();
    return rows[row].at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(cell(1, "tx_bytes"), "1200");
  EXPECT_EQ(cell(1, "rx_bytes"), "570");
  EXPECT_EQ(cell(2, "tx_bytes"), "0");
  EXPECT_EQ(cell(2, "rx_bytes"), "0");
}

TEST(CsvTest, NoCellIsAFormula) {
  const auto messageAs = [](const std::string& message) {
    ScenarioResult result = testing::sampleResult();
    result.runs[0].message = message;
    const auto rows = parseCsv(makeCsvRenderer()->text(result));
    const auto column = std::ranges::find(rows[0], "message") - rows[0].begin();
    return rows[1][static_cast<std::size_t>(column)];
  };
  for (const std::string text : {"=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1",
                                 "=HYPERLINK(\"http://x\",\"y\")", "+", "-", "--1", "+-1"}) {
    EXPECT_EQ(messageAs(text), "'" + text) << text;
  }
  for (const std::string text : {"-1", "+2.5e-3", "-0.5", "a=1", "1+1", "", "ok"}) {
    EXPECT_EQ(messageAs(text), text) << text;
  }
}

TEST(CsvTest, HasSizeAndBandwidthOfCollectiveCalls) {
  ScenarioResult result = testing::sampleResult();
  CollectiveRow call;
  call.operation = "all_reduce";
  call.size_bytes = 1 << 20;
  call.p50_ms = 12.5;
  call.algbw = 0.0838;
  call.busbw = 0.1258;
  result.runs[0].collectives = {call};
  result.runs[1].collectives = {call, call};
  result.runs[1].collectives[1].size_bytes = 4 << 20;
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  ASSERT_EQ(rows.size(), 1 + 9 + 2u) << "a row for each size of a run with several";
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  const auto cell = [&](std::size_t row, const std::string& name) {
    const auto at = std::ranges::find(rows[0], name) - rows[0].begin();
    return rows[row].at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(cell(1, "operation"), "all_reduce");
  EXPECT_EQ(cell(1, "size"), "1048576");
  EXPECT_EQ(cell(1, "time_ms"), "12.5");
  EXPECT_EQ(cell(1, "algbw"), "0.0838");
  EXPECT_EQ(cell(1, "busbw"), "0.1258");
  EXPECT_EQ(cell(2, "size"), "") << "the run has several";
  EXPECT_EQ(cell(3, "size"), "1048576");
  EXPECT_EQ(cell(4, "size"), "4194304");
  EXPECT_EQ(cell(4, "busbw"), "0.1258");
  EXPECT_EQ(cell(4, "strategy"), cell(2, "strategy"));
  EXPECT_EQ(cell(4, "status"), "ok");
  EXPECT_EQ(cell(4, "failovers"), "") << "counted in the row of the run alone";
  EXPECT_EQ(cell(5, "size"), "") << "no collective call";
}

TEST(CsvTest, RowsOfCallsHaveTheColumnsOfModelledRowsToo) {
  ScenarioResult result = testing::sampleResult();
  result.runs[1].collectives.resize(2);
  Summary& modelled = result.summary.emplace_back();
  modelled.strategy = "restart_at_scale";
  modelled.origin = Origin::kModelled;
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  const auto origin = std::ranges::find(rows[0], "origin") - rows[0].begin();
  EXPECT_EQ(rows[3].at(static_cast<std::size_t>(origin)), "measured");
}

TEST(CsvTest, HasWhatBecameOfRequests) {
  ScenarioResult result = testing::sampleResult();
  reports::Run& run = result.runs[1];
  for (const double ttft : {7.0, 5.0, 9.0}) {
    run.requests.push_back({.id = 0, .fate = "finished", .arrival_ms = {}, .ttft_ms = ttft});
  }
  run.rates = {{.requests = 2, .finished = 1, .late = 1}, {.requests = 1, .lost = 1, .redone = 1}};
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  const auto cell = [&](std::size_t row, const std::string& name) {
    const auto at = std::ranges::find(rows[0], name) - rows[0].begin();
    return rows[row].at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(cell(2, "requests"), "3");
  EXPECT_EQ(cell(2, "finished"), "1");
  EXPECT_EQ(cell(2, "late"), "1");
  EXPECT_EQ(cell(2, "lost"), "1");
  EXPECT_EQ(cell(2, "redone"), "1");
  EXPECT_EQ(cell(2, "ttft_ms_median"), "7");
  EXPECT_EQ(cell(2, "tpot_ms_median"), "");
  EXPECT_EQ(cell(1, "requests"), "");
}

TEST(CsvTest, LatenciesAreOfTheRatesThatAreToldTogether) {
  ScenarioResult result = testing::sampleResult();
  reports::Run& run = result.runs[1];
  for (const int rate : {0, 1}) {
    run.requests.push_back(
        {.id = 0, .rate = rate, .fate = "late", .arrival_ms = {}, .ttft_ms = 5.0 + 100 * rate});
  }
  const auto median = [&] {
    const auto rows = parseCsv(makeCsvRenderer()->text(result));
    const auto at = std::ranges::find(rows[0], "ttft_ms_median") - rows[0].begin();
    return rows[2].at(static_cast<std::size_t>(at));
  };
  EXPECT_EQ(median(), "55") << "the result does not say which";
  const auto row = std::ranges::find(result.summary, run.strategy, &Summary::strategy);
  ASSERT_NE(row, result.summary.end());
  row->pooled_rates = 1;
  EXPECT_EQ(median(), "5");
}

TEST(CsvTest, WhatProgramsToldHasAColumnForEachName) {
  ScenarioResult result = testing::sampleResult();
  result.runs[0].processes.resize(2);
  result.runs[0].processes[1].exit_code = 137;
  result.runs[0].metrics["busbw"] = {4.5, "GB/s"};
  result.runs[1].metrics["a,b"] = {2, ""};
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  const std::size_t last = rows[0].size() - 1;
  for (const auto& row : rows) ASSERT_EQ(row.size(), last + 1);
  EXPECT_EQ(rows[0][last - 2], "exit_codes");
  EXPECT_EQ(rows[0][last - 1], "metric_a,b");
  EXPECT_EQ(rows[0][last], "metric_busbw");
  EXPECT_EQ(rows[1][last - 2], "0 137");
  EXPECT_EQ(rows[1][last - 1], "");
  EXPECT_EQ(rows[1][last], "4.5");
  EXPECT_EQ(rows[2][last - 1], "2");
}

TEST(CsvTest, AModelledRowIsMarkedBehindTheRuns) {
  ScenarioResult result = testing::sampleResult();
  Summary& row = result.summary.emplace_back();
  row.strategy = "kv_replicate";
  row.origin = Origin::kModelled;
  row.overhead_pct = Overhead{12.5};
  row.fault_cost = FaultCost{245.5, 31};
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  ASSERT_EQ(rows.size(), 1 + result.runs.size() + 1);
  for (const auto& each : rows) EXPECT_EQ(each.size(), rows[0].size());
  EXPECT_THAT(rows[0], ::testing::IsSupersetOf({"origin", "modelled_overhead_pct"}));
  EXPECT_EQ(rows[1][rows[1].size() - 2], "measured");
  const auto& last = rows.back();
  EXPECT_EQ(last[2], "kv_replicate");
  EXPECT_EQ(last[last.size() - 2], "modelled");
  EXPECT_EQ(last.back(), "12.5");
  const auto column = [&](const char* name) {
    return last[static_cast<std::size_t>(std::ranges::find(rows[0], name) - rows[0].begin())];
  };
  EXPECT_EQ(column("modelled_fault_s"), "245.5");
  EXPECT_EQ(column("modelled_fault_requests"), "31");
}

TEST(CsvTest, CommasQuotesAndLineEndsStayInTheirCell) {
  ScenarioResult result = testing::sampleResult();
  result.runs[0].message = "a \"b\", c\nd";
  result.runs[1].message = "before\rbehind";
  EXPECT_NE(makeCsvRenderer()->text(result).find(",\"before\rbehind\","), std::string::npos);
  const auto rows = parseCsv(makeCsvRenderer()->text(result));
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_EQ(rows[1][7], "a \"b\", c\nd");
  for (const auto& row : parseCsv(makeCsvRenderer()->text(testing::hostileResult()))) {
    EXPECT_EQ(row.size(), rows[0].size());
  }
}

}  // namespace
}  // namespace faultline::reports
