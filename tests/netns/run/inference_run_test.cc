#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "reports/renderer.h"
#include "reports/result_json.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/run_program.h"
#include "tests/support/trace_rules.h"

// A server of a model, from the scenario to the result.

namespace faultline::run {
namespace {

/// A scenario up to its plan: a small model on two nodes of two rails.
std::string head(const std::string& name, int ranksPerNode, const std::string& memoryBandwidth) {
  return "version: 1\nname: " + name +
         "\ncluster: {kind: netns, nodes: 2, rails: 2, rail_rate: 400Mbit, ranks_per_node: " +
         std::to_string(ranksPerNode) + R"(}
workload:
  kind: inference
  warmup_iterations: 2
  model: {family: llama, layers: 4, hidden: 2048, heads: 16, kv_heads: 8, ffn: 4096, vocabulary: 32000, sequence: 2048, dtype: bf16}
  device: {gflops: 6000, efficiency: 40%, memory: 80GB, memory_bandwidth: )" +
         memoryBandwidth + "}\n  scale: 10\n";
}

/// The fault is longer than the watchdog, and comes twice: the rail may carry nothing just then.
std::string server(const std::string& name, const std::string& plan) {
  return head(name, 2, "20GB") + plan +
         R"(
strategies: [fault_free, {fail_stop: {watchdog: 300ms}}, hot_repair, kv_replicate]
faults:
  - {kind: port_down, target: {node: 1, rail: 0}, during: {iteration: 5, progress: 20%}, duration: 500ms, times: 2, every: 900ms}
limits: {deadline: 60s, give_up: 10s}
seed: 7
expect:
  - wrong_elements == 0
  - requests.lost == 0
  - requests.count == 40
  - fail_stop.restarts.count >= 1
  - fail_stop.requests.redone >= 1
  - hot_repair.failovers.count >= 1
  - hot_repair.requests.redone == 0
  - hot_repair.ttft_ms.n == 40
)";
}

constexpr const char* kAsked = R"(
    qps: [10, 20]
    requests: 20
    prompt: {mean: 1000, spread: uniform}
    output: {mean: 12, spread: uniform}
    objectives: {ttft: 2s, tpot: 400ms})";

/// The modelled row stands on the fault-free run at the rate of the fault, the first, and on
/// `scale`.
void expectModelled(const reports::ScenarioResult& result) {
  const reports::Summary& row = result.summary.back();
  EXPECT_EQ(row.strategy, "kv_replicate");
  EXPECT_EQ(row.origin, reports::Origin::kModelled);
  ASSERT_TRUE(row.model && row.fault_cost) << row.note;
  EXPECT_FALSE(row.overhead_pct);
  EXPECT_GT(row.fault_cost->seconds, 0);
  const auto free = std::ranges::find(result.runs, "fault_free", &reports::Run::strategy);
  ASSERT_NE(free, result.runs.end());
  double ttft = 0;
  for (int id = 0; id < 20; ++id) ttft += *free->requests[static_cast<std::size_t>(id)].ttft_ms;
  const auto valueOf = [&](std::string_view name) {
    const auto term = std::ranges::find(row.model->terms, name, &reports::ModelTerm::name);
    return term == row.model->terms.end() ? -1 : term->value;
  };
  EXPECT_NEAR(valueOf("measured: TTFT"), ttft / 20 * 10 / 1000, 1e-6);
  EXPECT_NEAR(valueOf("measured: offered"), 1, 1e-9);
  EXPECT_GT(valueOf("extra time of all requests, of one fault"), 0);
  EXPECT_GT(valueOf("all requests until the next fault longer by"), 2)
      << "streaming, and an outage";
  EXPECT_GT(valueOf("TTFT longer by"), 2);
  EXPECT_GT(valueOf("TPOT longer by"), 2);
}

void expectServed(const reports::ScenarioResult& result) {
  ASSERT_EQ(result.runs.size(), 3u);
  const std::string trace = reports::makeTraceRenderer()->text(result);
  EXPECT_NE(trace.find("request 39"), std::string::npos);
  EXPECT_THAT(testing::traceViolations(reports::Json::parse(trace)), ::testing::IsEmpty());
  for (const reports::Run& run : result.runs) {
    SCOPED_TRACE(run.strategy);
    EXPECT_GT(run.checked_elements, 0);
    ASSERT_EQ(run.requests.size(), 40u);
    ASSERT_EQ(run.rates.size(), 2u);
    EXPECT_GT(run.counters.at("steps"), 0);
    for (const reports::RateRow& rate : run.rates) {
      EXPECT_EQ(rate.finished + rate.late + rate.lost, rate.requests);
    }
    for (const reports::ServedRequest& request : run.requests) {
      ASSERT_TRUE(request.ttft_ms && request.e2e_ms) << request.id;
      EXPECT_GT(*request.ttft_ms, 0) << request.id;
      EXPECT_GE(*request.e2e_ms, *request.ttft_ms) << request.id;
    }
  }
  // All rows of a block are asked for the same.
  const auto askedOf = [](const reports::Run& run) {
    std::vector<std::pair<int, int>> asked;
    for (const auto& request : run.requests) asked.emplace_back(request.prompt, request.output);
    return asked;
  };
  EXPECT_EQ(askedOf(result.runs[0]), askedOf(result.runs[1]));
  EXPECT_EQ(askedOf(result.runs[0]), askedOf(result.runs[2]));
  ASSERT_EQ(result.summary.size(), 4u);
  ASSERT_TRUE(result.summary[1].latency);
  EXPECT_TRUE(result.summary[1].rates.at(0).ttft_overhead_pct);
  expectModelled(result);
}

struct Served {
  std::string out;  ///< what was printed
  reports::ScenarioResult result;
};

Served serve(const std::string& scenario, int exit) {
  const testing::TemporaryFolder folder;
  const std::string out = folder.path() / "out";
  const auto ran =
      testing::runFaultline({"run", folder.write("scenario.yaml", scenario), "--out", out});
  EXPECT_EQ(ran.exit, exit) << ran.out << ran.err;
  auto result = reports::readResult(out);
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return {ran.out, *std::move(result)};
}

const std::string kApart =
    "  parallel: {tensor: 2}\n  inference:\n"
    "    disaggregated: true" +
    std::string(kAsked);

TEST(InferenceRunTest, StagesAndTensorRanksServeThroughAFaultAndARestart) {
  const std::string plan =
      "  parallel: {tensor: 2, pipeline: 2}\n  inference:" + std::string(kAsked);
  const Served served = serve(server("mixed", plan), 0);
  EXPECT_NE(served.out.find("20 requests, "), std::string::npos) << served.out;
  expectServed(served.result);
}

TEST(InferenceRunTest, PrefillAndDecodeApartMoveKeysAndValuesThroughAFaultAndARestart) {
  expectServed(serve(server("apart", kApart), 0).result);
}

/// Requests come twice as fast as decode, with room for one, is done with each: keys and values
/// wait for longer than the watchdog does, and decode works in one process, which delivers nothing.
const std::string kFullDecode = head("full", 1, "4GB") + R"(  inference:
    disaggregated: true
    qps: [4]
    requests: 5
    batch: 1
    prompt: {mean: 200}
    output: {mean: 60}
strategies: [fault_free, {fail_stop: {watchdog: 300ms}}]
faults:
  - {kind: throttle, rate: 50%, target: {node: 1, rail: 0}, at: 100ms, until: end}
limits: {deadline: 60s, give_up: 10s}
seed: 7
expect:
  - wrong_elements == 0
  - requests.lost == 0
  - fail_stop.requests.redone == 0
)";

TEST(InferenceRunTest, AServerWhoseDecodeIsFullDoesNotHang) {
  const reports::ScenarioResult result = serve(kFullDecode, 0).result;
  ASSERT_EQ(result.runs.size(), 2u);
  for (const reports::Run& run : result.runs) {
    EXPECT_TRUE(run.restarts.empty()) << run.strategy;
    double longest = 0;
    for (const reports::ServedRequest& request : run.requests) {
      longest = std::max(longest, *request.tpot_ms * (request.output - 1));
    }
    EXPECT_GT(longest, 600) << "nobody waited for longer than the watchdog";
  }
}

/// The request that the fault is meant for moves a fiftieth of what the others do.
std::string shortRequest(const std::string& trace, int number) {
  return head("short", 1, "20GB") + R"(  parallel: {tensor: 2}
  inference:
    trace: )" +
         trace + R"(
    objectives: {ttft: 2s, tpot: 400ms}
strategies: [fault_free, hot_repair]
faults:
  - {kind: port_down, target: {node: 1, rail: 0}, during: {iteration: )" +
         std::to_string(number) + R"(, progress: 50%}, until: end}
limits: {deadline: 60s, give_up: 10s, chunk: 4KiB}
seed: 7
expect:
  - wrong_elements == 0
  - evidence.ok == true
)";
}

TEST(InferenceRunTest, AStrikeMeantForARequestThatIsTooShortComesInTheNext) {
  const testing::TemporaryFolder folder;
  const std::string trace =
      folder.write("trace.csv", "0,1000,12\n0.6,20,1\n1.0,1000,12\n1.6,1000,12\n");
  const Served served = serve(shortRequest(trace, 1), 0);
  ASSERT_EQ(served.result.runs.size(), 2u);
  const auto& faults = served.result.runs.back().faults;
  ASSERT_EQ(faults.size(), 1u);
  ASSERT_TRUE(faults.front().hit);
  EXPECT_TRUE(faults.front().hit->ok) << faults.front().hit->detail;
  EXPECT_EQ(faults.front().hit->iteration, 2);
  EXPECT_NE(faults.front().hit->detail.find("iteration 1 was over at "), std::string::npos);
}

TEST(InferenceRunTest, AStrikeThatNoRequestIsLeftForIsInvalid) {
  const testing::TemporaryFolder folder;
  const std::string trace = folder.write("trace.csv", "0,1000,12\n0.1,1000,12\n0.8,20,1\n");
  const reports::ScenarioResult result = serve(shortRequest(trace, 2), 5).result;
  ASSERT_EQ(result.runs.size(), 2u);
  EXPECT_EQ(result.runs.back().status, reports::RunStatus::kInvalid);
  EXPECT_NE(result.runs.back().message.find("never triggered: iteration 2 was over at "),
            std::string::npos)
      << result.runs.back().message;
}

TEST(InferenceRunTest, ACorruptElementFailsTheRun) {
  std::string text = server("corrupt", kApart);
  const std::string rows = "strategies: [fault_free, ";
  text.replace(text.find(rows), std::string::npos,
               "strategies: [{fault_free: {corrupt_one_element: true}}]\nlimits: {deadline: "
               "60s}\nexpect: [wrong_elements == 0]\n");
  EXPECT_EQ(serve(text, 1).result.runs.at(0).wrong_elements, 1);
}

}  // namespace
}  // namespace faultline::run
