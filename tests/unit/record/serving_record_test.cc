#include "harness/record/serving_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analysis/latency_rows.h"
#include "harness/analysis/noise.h"
#include "harness/analysis/summary.h"
#include "harness/record/run_record.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::run {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr TimePoint kServerStart{1000s};

/// Two rates of three requests, each of 10 and 5 tokens.
scenario::Scenario someServer() {
  scenario::Scenario scenario;
  scenario.workload.kind = scenario::findWorkloadKind("inference");
  inference::Serving& serving = scenario.workload.serving.emplace();
  serving.qps = {1000, 2000};
  serving.requests = 3;
  serving.prompt.mean = 10;
  serving.output.mean = 5;
  serving.objectives = {.ttft = 100ms, .tpot = 10ms};
  scenario.strategies = {{.name = "fault_free", .options = {}},
                         {.name = "hot_repair", .options = {}}};
  return scenario;
}

TimePoint at(Duration after) { return kServerStart + after; }

void rate(ServingRecord& record, int number, Duration when) {
  record.told(wire::Rate{number, at(when)});
}
void begin(ServingRecord& record, int id) { record.begun({.iteration = id}); }
void token(ServingRecord& record, int id, Duration when) {
  record.told(wire::Token{{id}, at(when)});
}
void end(ServingRecord& record, int id, Duration when) {
  record.ended(1, {.iteration = id});  // a rank that does not have the last token
  record.ended(0, {.iteration = id, .last = at(when)});
}

reports::Run finished(ServingRecord& record) {
  reports::Run run;
  record.finish(run, kServerStart, /*ended=*/true);
  for (int rate = 0; rate < std::ssize(record.rates()); ++rate) {
    run.rates.push_back(rateRow(run.requests, rate, record.rates()[rate]));
  }
  return run;
}

TEST(ServingRecordTest, EveryRequestIsInTheResultWhateverBecameOfIt) {
  ServingRecord record(someServer(), 0);
  rate(record, 0, 0ms);
  for (const int id : {0, 1, 2}) begin(record, id);
  token(record, 0, 50ms);
  end(record, 0, 70ms);
  token(record, 1, 150ms);
  end(record, 1, 170ms);
  token(record, 2, 60ms);
  const reports::Run run = finished(record);
  ASSERT_THAT(run.requests, SizeIs(6));
  EXPECT_EQ(run.requests[0].fate, "finished");
  EXPECT_NEAR(*run.requests[0].ttft_ms + *run.requests[0].arrival_ms, 50, 1e-6);
  EXPECT_NEAR(*run.requests[0].tpot_ms, 5, 1e-6);
  EXPECT_EQ(run.requests[1].fate, "late");
  EXPECT_EQ(run.requests[2].fate, "lost");
  EXPECT_FALSE(run.requests[2].e2e_ms);
  EXPECT_EQ(run.requests[3].fate, "lost");
  EXPECT_FALSE(run.requests[3].arrival_ms);
  ASSERT_THAT(run.rates, SizeIs(2));
  const reports::RateRow& first = run.rates[0];
  EXPECT_EQ(first.qps, 1000);
  EXPECT_THAT((std::vector{first.requests, first.finished, first.late, first.lost, first.redone}),
              ElementsAre(3, 1, 1, 1, 0));
  // One was served in time, from the first arrival to the last token; 1000 a second were offered.
  EXPECT_NEAR(first.goodput, 1000 / (170 - *run.requests[0].arrival_ms), 1e-9);
  EXPECT_EQ(first.ttft_ms.n, 3);
  EXPECT_EQ(first.tpot_ms.n, 2);
  EXPECT_FALSE(first.ttft_ms.p95);  // of three nobody knows
  EXPECT_TRUE(first.e2e_ms.p50) << "of three, one was never served: the middle one was";
  EXPECT_FALSE(first.e2e_ms.max) << "nobody knows how long the lost one would have taken";
  EXPECT_EQ(run.rates[1].lost, 3);
  EXPECT_FALSE(run.rates[1].ttft_ms.p50) << "nothing of it was served";
  ASSERT_TRUE(run.throughput);
  EXPECT_NEAR(run.throughput->value, 2 / 0.17, 1e-6);
}

TEST(ServingRecordTest, AfterARestartIsAskedForWhatIsMissing) {
  ServingRecord record(someServer(), 0);
  EXPECT_THAT(record.whatIsLeft().rates, SizeIs(2));
  EXPECT_EQ(record.whatIsLeft().rateStart, TimePoint{});
  EXPECT_EQ(record.whatIsLeft().usualPrompt, 10);
  EXPECT_EQ(record.whatIsLeft().usualOutput, 5);
  rate(record, 0, 0ms);
  begin(record, 0);
  token(record, 0, 5ms);
  end(record, 0, 7ms);
  begin(record, 1);
  token(record, 1, 9ms);
  EXPECT_EQ(record.underWay(), 1);
  workload::ServerConfig left = record.whatIsLeft();
  ASSERT_THAT(left.rates, SizeIs(2));
  EXPECT_THAT(left.rates[0].requests, SizeIs(2));
  EXPECT_EQ(left.rates[0].requests[0].id, 1);
  EXPECT_EQ(left.firstRate, 0);
  EXPECT_EQ(left.rateStart, kServerStart);
  begin(record, 1);
  token(record, 1, 80ms);  // again: the client has had it
  end(record, 1, 90ms);
  begin(record, 2);
  token(record, 2, 80ms);
  end(record, 2, 90ms);
  EXPECT_EQ(record.underWay(), 0);
  left = record.whatIsLeft();
  ASSERT_THAT(left.rates, SizeIs(1));
  EXPECT_EQ(left.firstRate, 1);
  EXPECT_EQ(left.rateStart, TimePoint{});
  const reports::Run run = finished(record);
  EXPECT_EQ(run.requests[1].begun, 2);
  EXPECT_NEAR(*run.requests[1].ttft_ms + *run.requests[1].arrival_ms, 9, 1e-6);
  EXPECT_EQ(run.rates[0].redone, 1);
}

TEST(ServingRecordTest, StepsAndLatenessAreThoseOfAllAttempts) {
  ServingRecord record(someServer(), 0);
  rate(record, 0, 0ms);
  for (int step = 0; step < 3; ++step) record.told(wire::Step{});
  record.ended(0, {.late = 2ms});
  record.ended(1, {.late = 3'500us});
  // Killed, and begun again: each attempt tells what is new.
  record.told(wire::Step{});
  record.ended(0, {.late = 2ms});
  record.served(0, {.late = 250us});
  const reports::Run run = finished(record);
  EXPECT_EQ(run.counters.at("steps"), 4);
  EXPECT_EQ(run.counters.at("late_compute_us"), 4250) << "of the slowest rank";
}

TEST(ServingRecordTest, ABlockHasItsOwnArrivalsAndARowDoesNot) {
  const auto requestsOf = [](int block) {
    return ServingRecord(someServer(), block).whatIsLeft().rates[0].requests;
  };
  EXPECT_EQ(requestsOf(3), requestsOf(3));
  EXPECT_NE(requestsOf(3), requestsOf(4));
}

TEST(ServingRecordTest, RunsOfTheDriftCheckAreAskedForTheSame) {
  scenario::Scenario scenario = someServer();
  scenario.noise.driftRuns = 1;
  scenario.noise.driftRow = {.name = "drift_check", .options = {}, .does = "fault_free"};
  const auto requestsOf = [&](const scenario::Strategy& strategy, int block) {
    RunRecord record(scenario, {block, &strategy, reports::Arm::kPlain});
    return record.whatIsLeftToServe()->rates[0].requests;
  };
  EXPECT_EQ(requestsOf(scenario.noise.driftRow, 0), requestsOf(scenario.noise.driftRow, 1));
  EXPECT_NE(requestsOf(scenario.strategies[0], 0), requestsOf(scenario.strategies[0], 1));
}

/// All requests of a run with these latencies.
reports::Run runOf(const std::string& strategy, int block, double ttft, double tpot) {
  reports::Run run;
  run.strategy = strategy;
  run.block = block;
  for (int id = 0; id < 6; ++id) {
    const bool second = id >= 3;
    const bool late = second && strategy == "hot_repair";
    run.requests.push_back({.id = id,
                            .rate = second,
                            .prompt = 10,
                            .output = 5,
                            .fate = late ? "late" : "finished",
                            .begun = 1,
                            .arrival_ms = 0,
                            .ttft_ms = second ? 2 * ttft : ttft,
                            .tpot_ms = tpot,
                            .e2e_ms = ttft + 4 * tpot});
  }
  for (int rate = 0; rate < 2; ++rate) {
    run.rates.push_back(rateRow(std::span(run.requests).subspan(3 * rate, 3), 1000 * (rate + 1)));
  }
  return run;
}

TEST(LatencyTest, MediansAreComparedWithinABlock) {
  const scenario::Scenario scenario = someServer();
  const std::vector<reports::Run> runs{
      runOf("fault_free", 0, 10, 2), runOf("hot_repair", 0, 11, 2), runOf("fault_free", 1, 20, 4),
      runOf("hot_repair", 1, 26, 5), runOf("fault_free", 2, 40, 4), runOf("hot_repair", 2, 44, 5)};
  const auto rows = summarise(scenario, runs, 7);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_FALSE(rows[0].rates[0].ttft_overhead_pct);
  EXPECT_FALSE(rows[0].knee_qps);
  ASSERT_THAT(rows[1].rates, SizeIs(2));
  ASSERT_TRUE(rows[1].rates[1].ttft_overhead_pct);
  EXPECT_NEAR(rows[1].rates[1].ttft_overhead_pct->median, 10, 1e-9);
  EXPECT_NEAR(rows[1].rates[1].tpot_overhead_pct->median, 25, 1e-9);
  EXPECT_EQ(rows[1].knee_qps, 2000);
  // 3 in each block, in 19, 46 and 64 ms one after the other.
  EXPECT_NEAR(rows[1].rates[0].goodput, 9 / 0.129, 1e-9);
  EXPECT_EQ(rows[1].rates[1].goodput, 0);
  ASSERT_TRUE(rows[1].latency);
  EXPECT_EQ(rows[1].latency->e2e_ms.n, 18);
}

TEST(LatencyTest, ARateWhoseArrivalsAreOverAtOnceIsABurst) {
  const scenario::Scenario scenario = someServer();
  const std::vector<reports::Run> runs{runOf("fault_free", 0, 10, 2), runOf("fault_free", 1, 20, 2),
                                       runOf("hot_repair", 0, 500, 2)};
  const auto rows = summarise(scenario, runs, 7);
  // The median of fault_free's requests is 23 ms; four of them at 1000 and 2000 a second.
  EXPECT_EQ(rows[0].rates[0].burst_below_requests, 92);
  EXPECT_EQ(rows[0].rates[1].burst_below_requests, 184);
  EXPECT_EQ(rows[1].rates[0].burst_below_requests, 92) << "the fault's time is none of a request";

  auto slow = runs;
  for (reports::Run& run : slow) run.rates[0].qps = 30;
  EXPECT_FALSE(summarise(scenario, slow, 7)[0].rates[0].burst_below_requests)
      << "three requests last 100 ms";
  for (reports::Run& run : slow) run.rates[0].qps = 33;
  EXPECT_EQ(summarise(scenario, slow, 7)[0].rates[0].burst_below_requests, 4);
}

TEST(LatencyTest, WhatMediansCostHasAnIntervalAndTheNoiseOfEqualRuns) {
  scenario::Scenario scenario = someServer();
  scenario.strategies.push_back({.name = "again", .options = {}, .does = "fault_free"});
  std::vector<reports::Run> runs;
  for (int block = 0; block < 10; ++block) {
    // The second row is 4 % faster and slower by turns; hot_repair costs 1 % of TTFT, 20 of TPOT.
    const double by = block % 2 == 0 ? 1.04 : 0.96;
    runs.push_back(runOf("fault_free", block, 100, 10));
    runs.push_back(runOf("again", block, 100 * by, 10 * by));
    runs.push_back(runOf("hot_repair", block, 101, 12));
  }
  const auto rows = summarise(scenario, runs, 7);
  const auto& ttft = rows[1].rates[0].ttft_overhead_pct;
  const auto& tpot = rows[1].rates[0].tpot_overhead_pct;
  ASSERT_TRUE(ttft && tpot && ttft->ci95 && ttft->at_most && tpot->distinguishable);
  EXPECT_EQ(ttft->n, 10);
  EXPECT_NEAR(ttft->ci95->hi, 1, 1e-9);
  EXPECT_NEAR(*ttft->at_most, 4, 1e-9) << "less than what equal runs differ by cannot be seen";
  EXPECT_EQ(ttft->distinguishable, false);
  EXPECT_NEAR(*tpot->at_most, 20, 1e-9);
  EXPECT_EQ(tpot->distinguishable, true);

  const auto few = summarise(scenario, std::span(runs).first(5 * 3), 7);
  EXPECT_FALSE(few[1].rates[0].ttft_overhead_pct->ci95) << "5 blocks";
  EXPECT_EQ(few[1].rates[0].ttft_overhead_pct->n, 5);
}

TEST(LatencyTest, WhatThe95thPercentileCostsIsOfAllBlocksTogether) {
  scenario::Scenario scenario = someServer();
  scenario.strategies.push_back({.name = "again", .options = {}, .does = "fault_free"});
  // Of the three requests of a run the last takes `tail` times as long, in three blocks.
  const auto rowsOf = [&](int blocks, double tail) {
    std::vector<reports::Run> runs;
    for (int block = 0; block < blocks; ++block) {
      for (const char* const row : {"fault_free", "again", "hot_repair"}) {
        runs.push_back(runOf(row, block, 100 + block % 2, 10));
        if (runs.back().strategy == "hot_repair" && block < 3) {
          *runs.back().requests[2].ttft_ms *= tail;
        }
      }
    }
    return summarise(scenario, runs, 7)[1].rates[0];
  };
  const reports::RateRow slow = rowsOf(20, 2);
  ASSERT_TRUE(slow.ttft_p95_overhead_pct && slow.ttft_p95_overhead_pct->ci95);
  EXPECT_EQ(slow.ttft_ms.n, 60);
  EXPECT_NEAR(slow.ttft_p95_overhead_pct->median, 100.0 * (2 * 100 - 101) / 101 * 0.05, 1.5)
      << "3 of 60 are slow: h = 59 * 0.95 is a twentieth of the way to the first of them";
  EXPECT_NEAR(slow.ttft_overhead_pct->median, 0, 1e-9) << "the median does not see them";
  EXPECT_GT(slow.ttft_p95_overhead_pct->ci95->hi, 50) << "some draws have six of them";
  EXPECT_GT(*slow.ttft_p95_overhead_pct->at_most, 50);
  EXPECT_NEAR(slow.tpot_p95_overhead_pct->median, 0, 1e-9);
  EXPECT_EQ(slow.tpot_p95_overhead_pct->distinguishable, false);
  EXPECT_FALSE(rowsOf(19, 2).ttft_p95_overhead_pct) << "57 requests";
}

TEST(LatencyTest, WhereEqualRunsDifferTooMuchInThemTheResultIsVoid) {
  scenario::Scenario scenario = someServer();
  scenario.strategies.push_back({.name = "again", .options = {}, .does = "fault_free"});
  const auto noiseAt = [&](double ttftBy, double tpotBy) {
    std::vector<reports::Run> runs;
    for (int block = 0; block < 12; ++block) {
      const double sign = block % 2 == 0 ? 1 : -1;
      runs.push_back(runOf("fault_free", block, 100, 10));
      runs.push_back(runOf("again", block, 100 * (1 + sign * ttftBy), 10 * (1 + sign * tpotBy)));
      for (reports::Run* run : {&runs[runs.size() - 2], &runs.back()}) {
        run->throughput = reports::Quantity{10, "requests/s"};
        for (reports::ServedRequest& request : run->requests) request.e2e_ms = 100;
      }
    }
    return noiseOf(scenario, runs, 7);
  };
  const auto quiet = noiseAt(0.05, 0.02);
  ASSERT_TRUE(quiet && quiet->ttft_band_pct && quiet->tpot_band_pct);
  EXPECT_FALSE(quiet->drift_pct) << "each block has other arrivals";
  EXPECT_NEAR(*quiet->ttft_band_pct, 5, 1e-9);
  EXPECT_NEAR(*quiet->tpot_band_pct, 2, 1e-9);
  EXPECT_EQ(quiet->void_because, "");
  EXPECT_THAT(noiseAt(0.2, 0.02)->void_because, HasSubstr("the median TTFT of equal runs"));
  EXPECT_THAT(noiseAt(0.05, 0.2)->void_because, HasSubstr("the median TPOT of equal runs"));
  scenario.noise.latencyPercent = 30;
  EXPECT_EQ(noiseAt(0.2, 0.2)->void_because, "");
}

TEST(LatencyTest, BeyondTheKneeNoNoiseIsLookedFor) {
  std::vector<reports::Run> runs{runOf("fault_free", 0, 100, 10), runOf("hot_repair", 0, 100, 10)};
  EXPECT_EQ(ratesKeptUp(runs), 2);
  runs[0].rates[1].finished = 1;
  EXPECT_EQ(ratesKeptUp(runs), 1);
  EXPECT_EQ(ratesKeptUp({}), 0);
}

TEST(LatencyTest, ARowIsOfTheRatesThatFaultFreeKeepsUpWith) {
  std::vector<reports::Run> runs{runOf("fault_free", 0, 10, 2), runOf("hot_repair", 0, 11, 2)};
  for (reports::Run& run : runs) run.throughput = reports::Quantity{1, "requests/s"};
  for (reports::ServedRequest& request : runs[1].requests) {
    if (request.rate == 1) *request.e2e_ms *= 10;
  }
  const auto whole = summarise(someServer(), runs, 7);
  EXPECT_EQ(whole[1].pooled_rates, 2);
  EXPECT_GT(whole[1].overhead_pct->median, 100);
  EXPECT_EQ(whole[0].note, "");

  runs[0].rates[1].finished = 1;
  const auto below = summarise(someServer(), runs, 7);
  EXPECT_EQ(below[1].pooled_rates, 1);
  EXPECT_EQ(below[1].latency->e2e_ms.n, 3);
  EXPECT_NEAR(below[1].overhead_pct->median, 100 * (19.0 / 18 - 1), 1e-9);
  EXPECT_THAT(below[0].note, HasSubstr("the first 1 of 2 rates"));
  EXPECT_THAT(below[1].rates, SizeIs(2)) << "which are all told of by themselves";

  runs[0].rates[0].finished = 1;
  EXPECT_EQ(summarise(someServer(), runs, 7)[1].pooled_rates, 2) << "it keeps up with none";
}

}  // namespace
}  // namespace faultline::run
