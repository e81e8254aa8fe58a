#include "reports/swept_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

// What the page shows of collective calls: medians over the runs of each strategy.

namespace faultline::reports {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kBytes = 8 << 20;

CollectiveRow rowOf(const std::string& operation, double ms) {
  CollectiveRow row;
  row.operation = operation;
  row.size_bytes = kBytes;
  row.dtype = "f32";
  row.n = 5;
  row.p50_ms = ms;
  row.busbw = static_cast<double>(kBytes) / ms / 1e6;
  return row;
}

Run runOf(const std::string& strategy, const std::vector<CollectiveRow>& rows) {
  Run run;
  run.strategy = strategy;
  run.collectives = rows;
  return run;
}

const StrategyCalls& find(const SweptCall& call, const std::string& strategy) {
  const auto found = std::ranges::find(call.strategies, strategy, &StrategyCalls::strategy);
  EXPECT_NE(found, call.strategies.end()) << strategy;
  return *found;
}

TEST(SweptCallsTest, HasTheMediansOfEachStrategyInTheOrderOfTheTable) {
  ScenarioResult result;
  for (const char* row : {"fault_free", "balance"}) result.summary.emplace_back().strategy = row;
  for (const double ms : {30.0, 10.0, 21.0}) {
    CollectiveRow row = rowOf("all_reduce", ms);
    row.bound = ms / 10;
    row.model = ms / 5;
    row.time_over_bound = ms / 20;
    result.runs.push_back(runOf("balance", {row}));
  }
  for (const double ms : {12.0, 40.0, 10.0, 16.0}) {
    result.runs.push_back(runOf("fault_free", {rowOf("all_reduce", ms)}));
  }
  const std::vector<SweptCall> calls = sweptCalls(result);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].operation, "all_reduce");
  EXPECT_EQ(calls[0].size_bytes, kBytes);
  EXPECT_EQ(calls[0].dtype, "f32");
  ASSERT_EQ(calls[0].strategies.size(), 2u);
  const StrategyCalls& free = calls[0].strategies[0];
  EXPECT_EQ(free.strategy, "fault_free");
  EXPECT_EQ(free.p50_ms, 14) << "of four the mean of the middle two";
  EXPECT_EQ(free.n, 20);
  EXPECT_FALSE(free.kept || free.bound || free.model || free.time_over_bound);
  const StrategyCalls& balance = calls[0].strategies[1];
  EXPECT_EQ(balance.strategy, "balance");
  EXPECT_EQ(balance.p50_ms, 21);
  EXPECT_EQ(balance.busbw, static_cast<double>(kBytes) / 21 / 1e6);
  EXPECT_EQ(balance.kept, 14.0 / 21);
  EXPECT_EQ(balance.bound, 2.1);
  EXPECT_EQ(balance.model, 4.2);
  EXPECT_EQ(balance.time_over_bound, 1.05);
  EXPECT_EQ(balance.n, 15);
}

TEST(SweptCallsTest, WhatIsKeptIsOfTheRowFaultFreeAlone) {
  // A second row and a drift check are fault-free runs, too, and may be the first.
  ScenarioResult result;
  for (const auto& [row, ms] :
       {std::pair{"again", 50.0}, std::pair{"drift_check", 60.0}, std::pair{"fault_free", 90.0}}) {
    result.runs.push_back(runOf(row, {rowOf("all_reduce", ms)}));
    result.runs.back().kind = "fault_free";
  }
  result.runs.push_back(runOf("balance", {rowOf("all_reduce", 180)}));
  const SweptCall call = sweptCalls(result).at(0);
  EXPECT_EQ(find(call, "balance").kept, 0.5);
  EXPECT_EQ(find(call, "again").kept, 1.8);
  EXPECT_EQ(find(call, "drift_check").kept, 1.5);
  EXPECT_FALSE(find(call, "fault_free").kept);
  std::erase_if(result.runs, [](const auto& run) { return run.strategy == "fault_free"; });
  EXPECT_FALSE(find(sweptCalls(result).at(0), "balance").kept) << "nothing to compare with";
}

TEST(SweptCallsTest, CallsThatDifferInAnythingAreApart) {
  CollectiveRow plain = rowOf("all_reduce", 10), typed = plain, reduced = plain, placed = plain,
                larger = plain;
  typed.dtype = "f16";
  reduced.op = "sum";
  placed.in_place = true;
  larger.size_bytes *= 2;
  ScenarioResult result;
  result.runs.push_back(runOf("balance", {plain, typed, reduced, placed, larger}));
  result.runs.push_back(runOf("optcc", {rowOf("all_gather", 10), larger, plain}));
  std::vector<std::string> seen;
  for (const SweptCall& call : sweptCalls(result)) {
    seen.push_back(
        call.operation + " " + call.dtype + call.op + (call.in_place ? " in place" : "") + " " +
        std::to_string(call.size_bytes >> 20) + ": " + std::to_string(call.strategies.size()));
  }
  EXPECT_THAT(seen, ElementsAre("all_reduce f32 8: 2", "all_reduce f16 8: 1",
                                "all_reduce f32sum 8: 1", "all_reduce f32 in place 8: 1",
                                "all_reduce f32 16: 2", "all_gather f32 8: 1"));
}

TEST(SweptCallsTest, WrongElementsAreAddedAndMarksOfOneRunStay) {
  CollectiveRow first = rowOf("all_reduce", 10), second = first;
  first.latency_only = true;
  first.wrong_elements = 3;
  first.left_out = 2;
  second.wrong_elements = 4;
  second.left_out = 1;
  second.unsettled = second.mis_measured = true;
  ScenarioResult result;
  result.runs = {runOf("balance", {first}), runOf("balance", {second})};
  const SweptCall call = sweptCalls(result).at(0);
  const StrategyCalls& balance = find(call, "balance");
  EXPECT_EQ(balance.wrong_elements, 7);
  EXPECT_EQ(balance.left_out, 3);
  EXPECT_TRUE(balance.latency_only && balance.unsettled && balance.mis_measured);
}

TEST(SweptCallsTest, WhatIsNoNumberIsInNoMedian) {
  CollectiveRow row = rowOf("all_reduce", 10), broken = row;
  broken.p50_ms = broken.busbw = std::numeric_limits<double>::quiet_NaN();
  broken.bound = 1.5;
  ScenarioResult result;
  result.runs = {runOf("balance", {broken}), runOf("balance", {row})};
  const SweptCall call = sweptCalls(result).at(0);
  EXPECT_EQ(find(call, "balance").p50_ms, 10);
  EXPECT_EQ(find(call, "balance").bound, 1.5);
  result.runs.pop_back();
  EXPECT_FALSE(find(sweptCalls(result).at(0), "balance").p50_ms);
}

TEST(SweptCallsTest, AResultWithoutCallsHasNone) {
  ScenarioResult result;
  EXPECT_TRUE(sweptCalls(result).empty());
  result.runs.push_back(runOf("balance", {}));
  EXPECT_TRUE(sweptCalls(result).empty());
}

}  // namespace
}  // namespace faultline::reports
