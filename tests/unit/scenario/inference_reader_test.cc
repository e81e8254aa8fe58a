#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kServer = R"(version: 1
name: server
cluster: {nodes: 2, ranks_per_node: 2}
workload:
  kind: inference
  model: llama3.1-8b
  device: {gflops: 1000, efficiency: 40%, memory: 80GB, memory_bandwidth: 3350MB}
  parallel: {tensor: 2, pipeline: 2}
  scale: 1000
  inference:
    qps: [2, 5]
    requests: 7
    prompt: {mean: 100, spread: lognormal, cv: 80%}
    objectives: {tpot: 30ms}
strategies: [fault_free, {fail_stop: {watchdog: 300ms}}]
)";

/// With one piece of text replaced.
std::string with(const std::string& piece, const std::string& by) {
  std::string text = kServer;
  const auto place = text.find(piece);
  EXPECT_NE(place, std::string::npos) << piece;
  return text.replace(place, piece.size(), by);
}

std::string messageOf(const std::string& text) {
  const ReadResult result = readScenario(text, "server.yaml");
  return result.ok() ? std::string() : result.mistakes.front().toString();
}

TEST(InferenceReaderTest, AServerIsRead) {
  const ReadResult result = readScenario(kServer, "server.yaml");
  ASSERT_TRUE(result.ok()) << result.mistakes.front().toString();
  const Workload& workload = result.scenario->workload;
  ASSERT_TRUE(workload.kind->hasRequests);
  ASSERT_TRUE(workload.serving);
  const inference::Serving& serving = *workload.serving;
  EXPECT_THAT(serving.qps, ElementsAre(2, 5));
  EXPECT_EQ(serving.requests, 7);
  EXPECT_EQ(workload.iterations, 14);
  EXPECT_EQ(serving.prompt, (inference::Lengths{inference::Spread::kLognormal, 100, 0.8}));
  EXPECT_EQ(serving.output, (inference::Lengths{inference::Spread::kFixed, 32, 0.5}));
  EXPECT_EQ(serving.objectives, (inference::Objectives{.ttft = 5s, .tpot = 30ms}));
  EXPECT_FALSE(serving.disaggregated);
  ASSERT_TRUE(workload.model);
  EXPECT_EQ(workload.model->device.memoryBandwidth, 3'350'000'000);
  EXPECT_EQ(workload.model->scale, 1000);
  const auto json = toJson(*result.scenario)["workload"];
  EXPECT_EQ(json["inference"]["qps"], (nlohmann::ordered_json{2, 5}));
  EXPECT_EQ(json["inference"]["objectives"]["ttft"], "5s");
  EXPECT_EQ(json["device"]["memory_bandwidth"], "3350MB");
  EXPECT_FALSE(json.contains("gradient"));
  const ReadResult again = readScenario(toJson(*result.scenario).dump(), "again.yaml");
  ASSERT_TRUE(again.ok()) << again.mistakes.front().toString();
  EXPECT_EQ(*again.scenario, *result.scenario);
}

TEST(InferenceReaderTest, ATraceTakesThePlaceOfRates) {
  const std::string path = ::testing::TempDir() + "faultline_trace_test.csv";
  std::ofstream(path) << "0.5,100,7\n1.5,90000,3\n";
  const std::string trace = "trace: " + path;
  const std::string lengths = "    prompt: {mean: 100, spread: lognormal, cv: 80%}\n";
  std::string text = with("qps: [2, 5]\n    requests: 7\n" + lengths, trace + "\n");
  const ReadResult result = readScenario(text, "server.yaml");
  ASSERT_TRUE(result.ok()) << result.mistakes.front().toString();
  EXPECT_THAT(result.scenario->workload.serving->trace.requests, SizeIs(2));
  EXPECT_EQ(result.scenario->workload.iterations, 2);
  EXPECT_THAT(messageOf(with("requests: 7", trace)), HasSubstr("'trace' says it"));
  std::ofstream(path) << "0.5,100\n";
  EXPECT_THAT(messageOf(text), HasSubstr("line 1 is neither a title nor a request"));
  std::remove(path.c_str());
  EXPECT_THAT(messageOf(text), HasSubstr("No such file"));
}

TEST(InferenceReaderTest, MistakesSayWhatToDo) {
  EXPECT_THAT(messageOf(with("ranks_per_node: 2", "ranks_per_node: 1")),
              HasSubstr("tensor 2 x pipeline 2 are 4 ranks, and the cluster has 2"));
  EXPECT_THAT(messageOf(with("requests: 7", "disaggregated: true")),
              HasSubstr("once for prefill and once for decode, are 8 ranks"));
  EXPECT_THAT(messageOf(with(", memory_bandwidth: 3350MB", "")),
              HasSubstr("needs the key 'memory_bandwidth'"));
  EXPECT_THAT(messageOf(with("  model: llama3.1-8b\n", "")), HasSubstr("needs the keys 'model'"));
  EXPECT_THAT(messageOf(with("memory: 80GB", "memory: 2GB")),
              HasSubstr("room for keys and values of 0 tokens"));
  EXPECT_THAT(messageOf(with("  scale", "  iterations: 5\n  scale")),
              HasSubstr("a workload of kind inference has none"));
  EXPECT_THAT(messageOf(with("kind: inference", "kind: training")),
              HasSubstr("inference: a workload of kind training has none"));
  EXPECT_THAT(messageOf(with("scale: 1000", "scale: 1\n  inference_: 1")), HasSubstr("inference_"));
  EXPECT_THAT(messageOf(with("[fault_free, ", "[shrink, ")),
              HasSubstr("shrink: each rank of a server"));
  const std::string server = kServer;
  EXPECT_THAT(messageOf(server + "repeat: 10\nnoise: {across_blocks: on}\n"),
              HasSubstr("each block of a server has other arrivals"));
  EXPECT_THAT(messageOf(with("[fault_free, ", "[fault_free, {fault_free: {as: again}}, ") +
                        "repeat: 10\nexpect: [noise.drift_pct < 5]\n"),
              HasSubstr("'noise: {drift_check: N}' looks at drift"));
}

// With 40 requests on average 20 + 8 s of arrivals; in which of the blocks it is more, says the
// seed.
TEST(InferenceReaderTest, AllRequestsArriveBeforeTheDeadline) {
  const std::string many = with("requests: 7", "requests: 40") + "repeat: 20\nseed: 3\n";
  EXPECT_THAT(
      messageOf(many + "limits: {deadline: 29s}\n"),
      ::testing::MatchesRegex(".*deadline: the requests of block [0-9]+ arrive over "
                              "(29|3[0-9])\\.[0-9] s, and a run ends at its deadline of 29s.*"));
  EXPECT_EQ(messageOf(many + "limits: {deadline: 50s}\n"), "");
}

TEST(InferenceReaderTest, OnlyAServerHasRequests) {
  const std::string expects = std::string(kServer) + "expect: [fail_stop.requests.lost == 0]\n";
  EXPECT_EQ(messageOf(expects), "");
  EXPECT_THAT(messageOf("version: 1\nname: n\nworkload: {kind: training}\n"
                        "strategies: [armed]\nexpect: [armed.ttft_ms.p95 <= 5]\n"),
              HasSubstr("only a workload of kind inference has requests"));
  EXPECT_THAT(
      messageOf(
          "version: 1\nname: n\nworkload: {kind: training}\n"
          "strategies: [fault_free, armed]\nexpect: [armed.tpot_overhead_pct.at_most <= 5]\n"),
      HasSubstr("only a workload of kind inference has requests"));
}

TEST(InferenceReaderTest, APercentileNeedsAsManyRequestsAsThereCanBe) {
  const auto why = [](const std::string& rest) { return messageOf(std::string(kServer) + rest); };
  EXPECT_THAT(why("expect: [fail_stop.ttft_ms.p95 <= 300]\n"), HasSubstr("needs 60 requests"));
  EXPECT_THAT(why("expect: [fail_stop.e2e_ms.p99 <= 300]\n"), HasSubstr("needs 300 requests"));
  EXPECT_EQ(why("repeat: 50\nexpect: [fail_stop.ttft_ms.p95 <= 300]\n"), "");
  EXPECT_EQ(why("expect: [fail_stop.ttft_ms.max <= 300]\n"), "");
}

TEST(InferenceReaderTest, WhatLatenciesCostAtMostTakesBlocksAndASecondRowOfFaultFree) {
  const auto why = [](const std::string& rest) { return messageOf(std::string(kServer) + rest); };
  EXPECT_EQ(why("expect: [fail_stop.ttft_overhead_pct <= 3]\n"), "");
  EXPECT_THAT(why("expect: [fault_free.ttft_overhead_pct <= 3]\n"),
              HasSubstr("it has none of its own"));
  EXPECT_THAT(why("repeat: 5\nexpect: [fail_stop.ttft_overhead_pct.ci95.hi <= 3]\n"),
              HasSubstr("needs 'repeat' to be at least 6"));
  EXPECT_THAT(why("repeat: 10\nexpect: [fail_stop.tpot_overhead_pct.at_most <= 3]\n"),
              HasSubstr("{fault_free: {as: again}}"));
}

}  // namespace
}  // namespace faultline::scenario
