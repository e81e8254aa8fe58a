#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "reports/renderer.h"
#include "reports/result_json.h"
#include "support/sample_result.h"
#include "support/trace_rules.h"

// trace.json.

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TraceTest, HasIterationsFaultsFailoversAndCounters) {
  const Json trace = Json::parse(makeTraceRenderer()->text(testing::sampleResult()));
  std::map<std::string, int> categories;
  std::map<std::string, int> phases;
  double end = 0;
  for (const Json& event : trace["traceEvents"]) {
    ASSERT_TRUE(event.contains("name") && event.contains("ph") && event.contains("pid")) << event;
    ++phases[event["ph"]];
    if (event["ph"] == "X") {
      ++categories[event["cat"]];
      EXPECT_GE(event["dur"].get<double>(), 0) << event;
      EXPECT_GE(event["ts"].get<double>(), 0) << event;
      end = std::max(end, event["ts"].get<double>());
    }
  }
  EXPECT_EQ(categories["run"], 9);
  EXPECT_EQ(categories["iteration"], 3 * (60 + 64 + 60)) << "fail_stop does four again";
  EXPECT_EQ(categories["fault"], 6);
  EXPECT_EQ(categories["failover"], 12 * 4);
  EXPECT_EQ(categories["restart"], 3 * 3);
  EXPECT_GT(phases["C"], 1000);
  EXPECT_GT(end, 9 * 3.5e6) << "the runs are not one after the other";
}

TEST(TraceTest, ShowsWhatTheRanksRecordedOnTracksOfTheirOwn) {
  ScenarioResult result = testing::sampleResult();
  result.runs.resize(1);
  const Json trace = Json::parse(makeTraceRenderer()->text(result));
  std::map<int, std::string> tracks;
  std::map<std::string, std::string> seen;  // event: phase and track
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
    if (event.value("cat", "") != "telemetry") continue;
    const std::string phase = event["ph"];
    seen[event["name"]] = phase + " " + tracks[event["tid"]];
    if (event["name"] != "chunk_arrived") continue;
    EXPECT_EQ(event["ts"], 11'000);
    EXPECT_EQ(event["dur"], 1'250);
    EXPECT_EQ(event["args"]["bytes"], 65536);
    EXPECT_EQ(event["args"]["number"], 4);
  }
  const std::map<std::string, std::string> expected{
      {"chunk_sent", "i rank 0 to rank 1 rail 0"},
      {"chunk_arrived", "X rank 1 from rank 0 rail 0"},
      {"rail_fence", "i rank 0 to rank 1 rail 0"},
      {"link_failed", "i rank 0 to rank 1"}};
  EXPECT_EQ(seen, expected);
}

TEST(TraceTest, ListsOfUnequalLengthAreReadAsFarAsAllGo) {
  ScenarioResult result = testing::sampleResult();
  result.runs.resize(1);
  result.runs[0].telemetry.number.clear();  // a result that somebody has edited
  EXPECT_EQ(makeTraceRenderer()->text(result).find("chunk_sent"), std::string::npos);
}

TEST(TraceTest, KeepsTheRulesOfItsFormat) {
  ScenarioResult odd = testing::sampleResult();
  for (reports::Run& run :
       odd.runs) {  // ends that round to another microsecond than the next begins at
    double at = 0.0004;
    for (Iteration& iteration : run.iterations) {
      iteration.start_ms = at;
      iteration.ms = 1.0007;
      at += iteration.ms;
    }
    for (Failover& failover : run.failovers) failover.resumed_ms = failover.fenced_ms;
  }
  for (const ScenarioResult& result :
       {testing::sampleResult(), odd, testing::hostileResult(), ScenarioResult{}}) {
    const Json trace = Json::parse(makeTraceRenderer()->text(result));
    EXPECT_THAT(testing::traceViolations(trace), ::testing::IsEmpty());
  }
}

TEST(TraceTest, WhatTakesNoMicrosecondIsAMoment) {
  ScenarioResult result = testing::sampleResult();
  for (reports::Run& run : result.runs) {
    for (Failover& failover : run.failovers) failover.resumed_ms = failover.fenced_ms;
  }
  const Json trace = Json::parse(makeTraceRenderer()->text(result));
  std::map<std::string, int> seen;
  for (const Json& event : trace["traceEvents"]) {
    if (event.value("cat", "") != "failover") continue;
    ++seen[event["ph"].get<std::string>() + " " + event["name"].get<std::string>()];
    EXPECT_TRUE(event["args"].contains("resent_bytes")) << event;
  }
  const std::map<std::string, int> expected{
      {"X detect", 12}, {"X fence", 12}, {"i resend elsewhere", 12}, {"X on the other rails", 12}};
  EXPECT_EQ(seen, expected);
}

TEST(TraceTest, RequestsThatOverlapAreOnLanesOfTheirOwn) {
  ScenarioResult result = testing::sampleResult();
  result.runs.resize(2);
  for (reports::Run& run : result.runs) {
    run.iterations.clear();
    // Three at a time, of which the second ends first; the last is on the lane that is free again.
    const std::vector<std::pair<double, double>> times{{0, 100}, {10, 20}, {20, 200}, {35, 50}};
    for (const auto& [at, lasts] : times) {
      run.requests.push_back({.id = static_cast<int>(run.requests.size()),
                              .fate = "finished",
                              .arrival_ms = at,
                              .ttft_ms = lasts / 2,
                              .e2e_ms = lasts});
      run.iterations.push_back({.index = run.requests.back().id, .start_ms = at, .ms = lasts});
    }
    run.requests.push_back({.id = 4, .fate = "lost", .arrival_ms = 40});
    run.requests.push_back({.id = 5, .fate = "lost"});  // its rate never began
  }
  const Json trace = Json::parse(makeTraceRenderer()->text(result));
  EXPECT_THAT(testing::traceViolations(trace), ::testing::IsEmpty());
  std::map<std::string, std::vector<int>> lanes;
  std::vector<std::string> names;
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") {
      const std::string name = event["args"]["name"];
      if (name.starts_with("lane ")) names.push_back(name);
    }
    if (event.value("cat", "") == "request") {
      lanes[event["name"].get<std::string>()].push_back(event["tid"].get<int>());
    }
    EXPECT_NE(event.value("cat", ""), "iteration") << "the same once more";
  }
  const std::map<std::string, std::vector<int>> expected{
      {"request 0", {1, 1}}, {"request 1", {2, 2}}, {"request 2", {3, 3}},
      {"request 3", {2, 2}}, {"request 4", {4, 4}}, {"first token", {1, 2, 3, 2, 1, 2, 3, 2}}};
  EXPECT_EQ(lanes, expected);
  EXPECT_EQ(names, (std::vector<std::string>{"lane 1", "lane 2", "lane 3", "lane 4"}))
      << "each is named once";
}

TEST(TraceTest, ARateIsWrittenWhereItChangesAndEndsWithTheLastBin) {
  ScenarioResult result = testing::sampleResult();
  result.runs.resize(1);
  reports::Run& run = result.runs[0];
  run.rail_series = {{.node = 0, .rail = 1, .bin_ms = 10, .tx_bytes = {1000, 1000, 2000}},
                     {.node = 0, .rail = 2, .bin_ms = 0, .tx_bytes = {1000}}};  // not measured
  const Json trace = Json::parse(makeTraceRenderer()->text(result));
  std::vector<std::pair<double, double>> rates;  // ms after the first, Mbit/s
  double first = -1;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "C") continue;
    EXPECT_EQ(event["name"], "rail 1 sent");
    const double at = event["ts"].get<double>() / 1000;
    if (first < 0) first = at;
    rates.emplace_back(at - first, event["args"]["Mbit/s"].get<double>());
  }
  EXPECT_EQ(rates, (std::vector<std::pair<double, double>>{{0, 0.8}, {20, 1.6}, {30, 0}}));
}

TEST(TraceTest, ItsRulesAreSeenToBeBroken) {
  const Json good = Json::parse(makeTraceRenderer()->text(testing::sampleResult()));
  const auto broken = [&](const char* phase, const char* key, const Json& value) {
    Json trace = good;
    for (Json& event : trace["traceEvents"]) {
      if (event["ph"] == phase) event[key] = value;
    }
    return !testing::traceViolations(trace).empty();
  };
  EXPECT_TRUE(broken("X", "ts", -1));
  EXPECT_TRUE(broken("X", "dur", 1e9)) << "all overlap";
  EXPECT_TRUE(broken("X", "dur", 0));
  EXPECT_TRUE(broken("X", "tid", 77)) << "no such track";
  EXPECT_TRUE(broken("i", "s", "x"));
  EXPECT_TRUE(broken("C", "args", {{"Mbit/s", "many"}}));
  EXPECT_TRUE(broken("M", "name", "title"));
}

TEST(TraceTest, HostileTextIsValidJson) {
  EXPECT_TRUE(Json::accept(makeTraceRenderer()->text(testing::hostileResult())));
}

}  // namespace
}  // namespace faultline::reports
