#include "harness/analysis/serving_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "harness/analysis/latency_rows.h"
#include "harness/analysis/summary.h"
#include "tests/support/sample_scenario.h"

// Expected values are worked out by hand; the formulas are in docs/baselines.md.

namespace faultline::run {
namespace {

using ::testing::HasSubstr;

constexpr const char* kDuringTheSecondRate = "during: {iteration: 3, progress: 50%}";

/// A server of three rates with a request or two each, a tenth of the real one, and one fault.
scenario::Scenario tenthOfAServer(const std::string& trigger = kDuringTheSecondRate,
                                  const std::string& options = "{missed: 3}") {
  const std::string yaml =
      "version: 1\nname: sample\n"
      "cluster: {kind: netns, nodes: 2, rails: 2, rail_rate: 400Mbit}\n"
      "workload:\n"
      "  kind: inference\n"
      "  model: {family: llama, layers: 8, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336,"
      " vocabulary: 128256, sequence: 8192}\n"
      "  device: {gflops: 1978, efficiency: 40%, memory: 80GB, memory_bandwidth: 6700MB}\n"
      "  parallel: {tensor: 2}\n"
      "  scale: 10\n"
      "  inference: {qps: [10, 20, 40], requests: 2, prompt: {mean: 100}, output: {mean: 11}}\n"
      "strategies: [fault_free, hot_repair, {kv_replicate: " +
      options +
      "}]\n"
      "faults:\n"
      "  - {kind: port_down, target: {node: 1, rail: 0}, " +
      trigger + ", duration: 40ms}\n";
  scenario::ReadResult read = scenario::readScenario(yaml, "sample");
  if (!read.ok()) throw std::runtime_error(read.mistakes.front().toString());
  return *std::move(read.scenario);
}

/// Rates begin at 100, 600 and 1100 ms; the second requests come 40 ms after the first. TTFT is 20
/// ms at the first rate, 30 at the second and 90 at the third, where nobody is in time.
reports::Run servedRun(const std::string& strategy, int block) {
  reports::Run run = sampleRun(strategy, block);
  run.iterations.clear();
  const double qps[] = {10, 20, 40}, ttft[] = {20, 30, 90};
  for (int id = 0; id < 6; ++id) {
    const int rate = id / 2;
    const bool second = id % 2 == 1;
    const double tpot = second ? 4 : 6;
    const int output = second ? 21 : 11;
    run.requests.push_back({.id = id,
                            .rate = rate,
                            .prompt = second ? 300 : 100,
                            .output = output,
                            .fate = rate == 2 ? "late" : "finished",
                            .begun = 1,
                            .arrival_ms = 100 + 500 * rate + (second ? 40 : 0),
                            .ttft_ms = ttft[rate],
                            .tpot_ms = tpot,
                            .e2e_ms = ttft[rate] + (output - 1) * tpot});
  }
  for (int rate = 0; rate < 3; ++rate) {
    run.rates.push_back(rateRow(std::span(run.requests).subspan(2 * rate, 2), qps[rate]));
  }
  return run;
}

std::vector<reports::Run> twoBlocks() {
  reports::Run damaged = servedRun("hot_repair", 0);
  for (auto& request : damaged.requests) request.ttft_ms = 5000;
  return {servedRun("fault_free", 0), damaged, servedRun("fault_free", 1)};
}

TEST(ServingCaseTest, IsTheRateOfTheFaultAsFaultFreeServesItWithoutScale) {
  const auto made = servingCase(tenthOfAServer(), twoBlocks());
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->scale, 10);
  EXPECT_NEAR(made->requestsPerSecond, 2, 1e-9) << "20 on this machine's clock";
  EXPECT_NEAR(made->capacity, 2, 1e-9) << "it does not keep up with 40";
  EXPECT_NEAR(made->requests, 2, 1e-9) << "of one run";
  EXPECT_NEAR(made->promptTokens, 200, 1e-9);
  EXPECT_NEAR(made->outputTokens, 16, 1e-9);
  EXPECT_NEAR(made->prefillSeconds, 0.2, 1e-9) << "of the lowest rate";
  EXPECT_NEAR(made->firstTokenSeconds, 0.3, 1e-9);
  EXPECT_NEAR(made->tokenSeconds, 0.05, 1e-9);
  EXPECT_NEAR(made->endToEndSeconds, 10 * (0.03 + (0.06 + 0.08) / 2), 1e-9);
  // 2 * 8 heads * 128 * 2 bytes * 8 layers, half of it on each rank; two rails of 50 MB/s.
  EXPECT_NEAR(made->kvBytesPerToken, 16384, 1e-9);
  EXPECT_NEAR(made->bytesPerSecond, 1e8, 1e-3);
}

TEST(ServingCaseTest, TimesAreTakenAsMeasuredWhereTheDeviceIsSlowByScale) {
  const auto unscaled = servingCase(tenthOfAServer(), twoBlocks());
  const auto measured = servingCase(tenthOfAServer(), twoBlocks(), /*asMeasured=*/true);
  ASSERT_TRUE(unscaled.ok() && measured.ok());
  EXPECT_EQ(measured->scale, 1);
  EXPECT_NEAR(measured->firstTokenSeconds * 10, unscaled->firstTokenSeconds, 1e-9);
  EXPECT_NEAR(measured->requestsPerSecond, unscaled->requestsPerSecond * 10, 1e-9);
  EXPECT_NEAR(measured->bytesPerSecond, unscaled->bytesPerSecond * 10, 1e-3);
  EXPECT_EQ(measured->kvBytesPerToken, unscaled->kvBytesPerToken);
}

TEST(ServingCaseTest, AServersSpeedIsOfItsRequestsAndNotOfTheirArrivals) {
  reports::Run run = servedRun("fault_free", 0);
  constexpr int kAll = 100;
  const std::optional<double> speed = speedOf(run, kAll);
  ASSERT_TRUE(speed);
  for (reports::ServedRequest& request : run.requests) {
    if (request.e2e_ms) *request.e2e_ms *= 1.25;
  }
  EXPECT_NEAR(*speedOf(run, kAll), *speed / 1.25, 1e-9);
  run.requests.clear();
  EXPECT_EQ(speedOf(run, kAll), run.throughput->value);
  run.status = reports::RunStatus::kHung;
  EXPECT_FALSE(speedOf(run, kAll));
}

TEST(ServingCaseTest, TheMomentOfTheFaultChoosesTheRate) {
  const auto early = servingCase(tenthOfAServer("at: 350ms"), twoBlocks());
  ASSERT_TRUE(early.ok());
  EXPECT_NEAR(early->requestsPerSecond, 1, 1e-9);
  const auto first = servingCase(tenthOfAServer("at: 50ms"), twoBlocks());
  ASSERT_TRUE(first.ok());
  EXPECT_NEAR(first->requestsPerSecond, 1, 1e-9) << "before the first request";
  const auto late = servingCase(tenthOfAServer("at: 1200ms"), twoBlocks());
  ASSERT_TRUE(late.ok());
  EXPECT_NEAR(late->requestsPerSecond, 4, 1e-9);
  EXPECT_NEAR(late->capacity, 2, 1e-9);
}

TEST(ServingCaseTest, WhatIsMissingIsSaid) {
  const auto why = [](const scenario::Scenario& scenario, std::span<const reports::Run> runs) {
    return std::string(servingCase(scenario, runs).status().message());
  };
  EXPECT_THAT(why(sampleScenario(), twoBlocks()), HasSubstr("not a server"));
  EXPECT_THAT(why(tenthOfAServer(), {}), HasSubstr("no run of fault_free"));
  scenario::Scenario whole = tenthOfAServer();
  whole.faults.clear();
  EXPECT_THAT(why(whole, twoBlocks()), HasSubstr("no fault"));
  std::vector<reports::Run> overloaded = twoBlocks();
  for (reports::Run& run : overloaded) {
    for (reports::RateRow& rate : run.rates) rate.finished = 0;
  }
  EXPECT_THAT(why(tenthOfAServer(), overloaded), HasSubstr("keeps up with none"));
}

TEST(ServingCaseTest, TheRowHasANumberAndSaysWhatWasMeasuredAndWhatWasNot) {
  const auto rows =
      summarise(tenthOfAServer("at: 100ms",
                               "{heartbeat: 100ms, missed: 3, restart: 500ms, streaming: 0%, "
                               "time_between_faults: 2s}"),
                twoBlocks(), 7);
  ASSERT_EQ(rows.size(), 3u);
  const reports::Summary& row = rows[2];
  EXPECT_EQ(row.origin, reports::Origin::kModelled);
  EXPECT_EQ(row.n, 0);
  EXPECT_THAT(row.note, HasSubstr("times x 10, rates / 10"));
  EXPECT_THAT(row.note, HasSubstr("offered 1 requests/s"));
  EXPECT_THAT(row.note, HasSubstr("modelled, in real times: extra time of all requests"));
  ASSERT_TRUE(row.fault_cost && row.model);
  EXPECT_FALSE(row.overhead_pct) << "its denominator is not that of executed rows";
  EXPECT_EQ(row.model->terms.front().name, "measured: offered");
  EXPECT_THAT(row.note, HasSubstr("are of the 2 requests of a run with its faults"));
  // One request a second, each of 0.2 + 0.7 s: 0.9 under way, of 208 tokens each. Half loaded, and
  // two requests come until the next fault.
  const double outage = 0.3 + 0.5 + 0.9 * 208 * 16384 / 1e8 + 0.05;
  const double waiting = outage * outage / (2 * 0.5);
  EXPECT_NEAR(row.fault_cost->seconds, 0.9 * outage + waiting, 1e-6);
  const reports::ModelTerm& share = row.model->terms.back();
  EXPECT_EQ(share.name, "all requests until the next fault longer by");
  EXPECT_NEAR(share.value, 100 * (0.9 * outage + waiting) / (2 * 0.9), 1e-6);
  const reports::ModelTerm& tpot = row.model->terms[row.model->terms.size() - 2];
  EXPECT_EQ(tpot.name, "TPOT longer by");
  EXPECT_NEAR(tpot.value, 100 * 0.9 * outage / (2 * 0.9), 1e-6);
}

}  // namespace
}  // namespace faultline::run
