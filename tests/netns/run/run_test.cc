#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/input_file.h"
#include "tests/netns/run/run_fixture.h"
#include "tests/support/json_schema.h"
#include "tests/support/trace_rules.h"

// Whole runs of the real program, small enough for CI: what users are promised of the first
// minutes.

namespace faultline::run {
namespace {

using reports::RunStatus;
using reports::ScenarioResult;
using reports::Verdict;
using ::testing::HasSubstr;
using testing::Ran;
using testing::runFaultline;

TEST_F(RunTest, TheQuickstartPasses) {
  constexpr int kVoid = 5;
  Ran ran;
  // One block decides little where others use the machine; a run says that of itself.
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::filesystem::remove_all(out());
    ran = runFaultline({"run", FAULTLINE_SOURCE_DIR "/scenarios/quickstart.yaml", "--repeat", "1",
                        "--out", out()});
    if (ran.exit != kVoid || ran.out.find("noisy") == std::string::npos) break;
  }
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const ScenarioResult result = this->result();
  EXPECT_EQ(runOf(result, "fault_free").status, RunStatus::kOk);
  EXPECT_EQ(runOf(result, "fail_stop").status, RunStatus::kHung);
  EXPECT_EQ(runOf(result, "fail_stop").restarts.size(), 1u);
  EXPECT_GE(runOf(result, "hot_repair").failovers.size(), 1u);

  EXPECT_TRUE(result.scenario_file.ends_with("/scenarios/quickstart.yaml"));
  for (const reports::Run& run : result.runs) {
    ASSERT_TRUE(run.load) << run.strategy;
    EXPECT_GE(run.load->samples, 2) << "of a run of some seconds";
    EXPECT_TRUE(run.load->others_pct && run.load->busy_pct && run.load->load_average);
  }
  EXPECT_THAT(*readFile(out() + "/summary.md"), HasSubstr("### PASS: quickstart"));

  // What other programs were promised of it.
  const auto schema =
      reports::Json::parse(*readFile(FAULTLINE_SOURCE_DIR "/reports/result.schema.json"));
  const auto json = reports::Json::parse(*readFile(out() + "/result.json"));
  EXPECT_THAT(testing::schemaViolations(schema, json), ::testing::IsEmpty());
}

TEST_F(RunTest, TwoRanksOfANodeShareItsNicsAlsoThroughAFailover) {
  std::string text = scenarioText("[fault_free, hot_repair]", portDown("carrier", "300ms"),
                                  "[wrong_elements == 0, hot_repair.failovers.count >= 2]");
  const std::string one = "nodes: 3, ranks_per_node: 1";
  text.replace(text.find(one), one.size(), "nodes: 2, ranks_per_node: 2");
  const Ran ran = run(text);
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run repaired = runOf(result(), "hot_repair");
  for (const reports::Failover& failover : repaired.failovers) {
    EXPECT_EQ(failover.rail, 0);
    EXPECT_TRUE(failover.rank / 2 == 1 || failover.peer / 2 == 1) << "not of node 1";
    EXPECT_NE(failover.rank / 2, failover.peer / 2) << "they have memory in common, no NIC";
    EXPECT_EQ(failover.cause, failover.rank / 2 == 1 ? "local_nic" : "remote_nic");
  }
  // Each of two processes has two links over the NIC: eight ends.
  EXPECT_EQ(repaired.counters.at("failovers"), 8);
  EXPECT_EQ(repaired.counters.at("connections_rejected"), 0);
}

TEST_F(RunTest, WithTelemetryEveryChunkIsInTheTrace) {
  const Ran ran =
      run(scenarioText("[hot_repair]", portDown("carrier", "300ms")) + "telemetry: on\n");
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run run = runOf(result(), "hot_repair");
  const auto count = [&run](const std::string& kind) {
    return std::ranges::count(run.telemetry.kind, kind);
  };
  EXPECT_EQ(run.counters.at("telemetry_dropped"), 0);
  EXPECT_EQ(run.counters.at("chunks_sent"), count("chunk_sent"));
  EXPECT_EQ(run.counters.at("chunks_arrived") + run.counters.at("chunks_duplicate"),
            count("chunk_arrived"));
  EXPECT_EQ(run.counters.at("failovers"), count("rail_closed"));
  EXPECT_GE(count("failed_over"), 1);
  const auto trace = readFile(out() + "/trace.json");
  ASSERT_TRUE(trace.ok());
  EXPECT_NE(trace->find("chunk_arrived"), std::string::npos);
  EXPECT_THAT(testing::traceViolations(reports::Json::parse(*trace)), ::testing::IsEmpty());
}

TEST_F(RunTest, APortGoesDownAndTheJobGoesOnWithTheSameBits) {
  for (const std::string how : {"carrier", "admin"}) {
    const Ran ran = run(scenarioText("[fault_free, hot_repair]", portDown(how, "300ms"),
                                     "[digest_matches == true, hot_repair.failovers.count >= 1, "
                                     "hot_repair.status == ok]",
                                     "random"));
    ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
    const ScenarioResult result = this->result();
    EXPECT_EQ(result.verdict, Verdict::kPass) << result.reason;
    const reports::Run plain = runOf(result, "fault_free");
    const reports::Run repaired = runOf(result, "hot_repair");
    EXPECT_EQ(plain.iterations.size(), 20u);
    EXPECT_EQ(repaired.iterations.size(), 20u);
    EXPECT_TRUE(repaired.restarts.empty());
    EXPECT_GE(repaired.failovers.size(), 1u);
    EXPECT_GE(repaired.failbacks.size(), 1u) << "the port came back, its rail was not used again";
    ASSERT_EQ(repaired.evidence.size(), 1u);
    EXPECT_TRUE(repaired.evidence[0].ok) << repaired.evidence[0].observed;
    ASSERT_EQ(repaired.faults.size(), 1u);
    EXPECT_TRUE(repaired.faults[0].hit->ok) << repaired.faults[0].hit->detail;
    EXPECT_FALSE(plain.digest.empty());
    EXPECT_EQ(plain.digest, repaired.digest);
    EXPECT_TRUE(plain.failovers.empty());
  }
}

TEST_F(RunTest, FailStopReallyHangsAndGoesOnFromItsCheckpoint) {
  const Ran ran =
      run(scenarioText("[fault_free, {fail_stop: {watchdog: 500ms, checkpoint_every: 5}}]",
                       portDown("carrier", "1s")));
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const ScenarioResult result = this->result();
  const reports::Run stopped = runOf(result, "fail_stop");
  EXPECT_EQ(stopped.status, RunStatus::kHung) << stopped.message;
  ASSERT_EQ(stopped.restarts.size(), 1u);
  const reports::Restart& restart = stopped.restarts[0];
  EXPECT_EQ(restart.lost_iterations, 4) << "5, 6, 7 and the half of 8 came after the checkpoint";
  EXPECT_GT(restart.lost_ms, 0);
  EXPECT_GT(restart.load_ms, 0);
  EXPECT_GE(restart.hang_ms + restart.isolate_ms, 900) << "the port was down for 1 s";
  EXPECT_GT(*restart.unscaled_total_ms, 600'000);
  EXPECT_EQ(stopped.iterations.back().index, 19);
  EXPECT_EQ(stopped.wrong_elements, 0);
  EXPECT_EQ(stopped.counters.at("payload_bytes_while_hung"), 0);
  EXPECT_LT(stopped.throughput->value, runOf(result, "fault_free").throughput->value);
}

TEST_F(RunTest, ARestartAfterAPortWasSwitchedOffIsAsShortAsAfterALostCarrier) {
  // The last node is only connected to: it sends nothing from which others could learn where it is.
  std::map<std::string, double> load;
  for (const std::string how : {"carrier", "admin"}) {
    const Ran ran = run(scenarioText("[{fail_stop: {watchdog: 500ms, checkpoint_every: 5}}]",
                                     portDown(how, "1s", /*node=*/2)));
    ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
    const reports::Run stopped = runOf(result(), "fail_stop");
    ASSERT_EQ(stopped.restarts.size(), 1u);
    load[how] = stopped.restarts[0].load_ms;
  }
  EXPECT_LT(load["admin"], 10 * load["carrier"]);
}

TEST_F(RunTest, AFaultThatDoesNothingMakesTheRunInvalid) {
  const Ran ran = run(scenarioText("[fault_free, hot_repair]",
                                   "[{kind: none, target: {node: 1, rail: 0}, "
                                   "during: {iteration: 8, progress: 50%}, duration: 100ms}]"));
  EXPECT_EQ(ran.exit, 5) << ran.out << ran.err;
  EXPECT_EQ(result().verdict, Verdict::kInvalid);
  EXPECT_NE(result().reason.find("evidence"), std::string::npos) << result().reason;
}

TEST_F(RunTest, AFaultThatNeverTriggersMakesTheRunInvalid) {
  const Ran ran = run(scenarioText("[fault_free, hot_repair]",
                                   "[{kind: port_down, how: carrier, target: {node: 1, rail: 0}, "
                                   "at: 20s, duration: 100ms}]"));
  EXPECT_EQ(ran.exit, 5) << ran.out << ran.err;
  EXPECT_NE(result().reason.find("never triggered"), std::string::npos) << result().reason;
}

TEST_F(RunTest, OneCorruptedElementFails) {
  const Ran ran = run(scenarioText("[fault_free, {hot_repair: {corrupt_one_element: true}}]",
                                   portDown("carrier", "200ms"), "[]"));
  EXPECT_EQ(ran.exit, 1) << ran.out << ran.err;
  EXPECT_EQ(result().verdict, Verdict::kFail);
  EXPECT_EQ(runOf(result(), "hot_repair").wrong_elements, 1);
}

TEST_F(RunTest, OneCorruptedElementChangesTheDigest) {
  const Ran ran = run(scenarioText("[fault_free, {hot_repair: {corrupt_one_element: true}}]",
                                   portDown("carrier", "200ms"), "[]", "random"));
  EXPECT_EQ(ran.exit, 1) << ran.out << ran.err;
  EXPECT_NE(runOf(result(), "hot_repair").digest, runOf(result(), "fault_free").digest);
}

TEST_F(RunTest, ThrottleAndBlackHoleLeaveEvidenceAndLoseNothing) {
  const std::string faults =
      "[{kind: throttle, rate: 25%, target: {node: 0, rail: 1}, during: {iteration: 5, progress: "
      "30%}, duration: 300ms}, {kind: blackhole, target: {node: 2, rail: 0}, during: {iteration: "
      "12, progress: 50%}, duration: 400ms}]";
  const Ran ran = run(scenarioText("[fault_free, hot_repair]", faults,
                                   "[wrong_elements == 0, hot_repair.failovers.count >= 1]"));
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run repaired = runOf(result(), "hot_repair");
  ASSERT_EQ(repaired.evidence.size(), 2u);
  for (const auto& evidence : repaired.evidence) EXPECT_TRUE(evidence.ok) << evidence.observed;
  for (const auto& failover : repaired.failovers) {
    EXPECT_EQ(failover.rail, 0) << "the throttled rail was slow, not dead";
    EXPECT_EQ(failover.cause, "path");
  }
}

TEST_F(RunTest, RandomFaultsForSomeSecondsLoseNothingAndLeaveNothingOpen) {
  const Ran ran = runFaultline(
      {"run", FAULTLINE_SOURCE_DIR "/scenarios/soak.yaml", "--out", out(), "--strategy",
       "hot_repair", "--set", "workload.time=8s", "--set", "fault_processes.0.for=7s", "--set",
       "expect=[wrong_elements == 0, hot_repair.status == ok, "
       "hot_repair.failovers.count >= 1, "
       "hot_repair.open_files_growth.end == 0]"},
      folder_.path());
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run soaked = runOf(result(), "hot_repair");
  // Whether its time is over is asked between two iterations: the last one may have ended before.
  double pause = 0;
  for (std::size_t i = 1; i < soaked.iterations.size(); ++i) {
    const reports::Iteration& before = soaked.iterations[i - 1];
    pause = std::max(pause, soaked.iterations[i].start_ms - before.start_ms - before.ms);
  }
  EXPECT_GE(soaked.duration_ms + pause, 8000) << "the work goes on until its time is over";
  EXPECT_LT(soaked.iterations.size(), 1'000'000u);
  EXPECT_GE(soaked.faults.size(), 10u);
  ASSERT_EQ(soaked.resources.size(), 4u);
  for (const reports::ResourceUse& use : soaked.resources) {
    EXPECT_GT(use.memory_start_bytes, 1 << 20);
    EXPECT_GE(use.memory_max_bytes, use.memory_end_bytes);
    EXPECT_GT(use.open_files_start, 3);
  }
}

TEST_F(RunTest, ASampleOfTheAcceptanceScenarios) {
  const std::vector<std::pair<std::string, std::string>> samples{
      {"black-hole", "hot_repair.failovers.cause == path"},
      {"connection-reset", "hot_repair.failovers.cause == rail"},
      {"black-hole-between", "hot_repair.failovers.where == between"},
      {"throttle-10", "hot_repair.failovers.count == 0"}};
  for (const auto& [name, finding] : samples) {
    const Ran ran = runFaultline(
        {"run", FAULTLINE_SOURCE_DIR "/scenarios/acceptance/" + name + ".yaml", "--out", out(),
         "--strategy", "hot_repair", "--set", "workload.iterations=60", "--set", "faults.0.times=3",
         "--set", "expect=[wrong_elements == 0, evidence.ok == true, " + finding + "]", "--force"},
        folder_.path());
    EXPECT_EQ(ran.exit, 0) << name << ran.out << ran.err;
    EXPECT_EQ(runOf(result(), "hot_repair").faults.size(), 3u) << name;
  }
}

TEST_F(RunTest, AWholeRailGoesDownAtAllNodesAtOnceAndComesBack) {
  const Ran ran = runFaultline(
      {"run", FAULTLINE_SOURCE_DIR "/scenarios/acceptance/rail-group-down.yaml", "--out", out(),
       "--strategy", "hot_repair", "--set", "workload.iterations=70", "--set", "faults.0.times=2",
       "--set",
       "expect=[wrong_elements == 0, evidence.ok == true, hot_repair.failovers.count >= 8, "
       "hot_repair.failbacks.count >= 24]"},
      folder_.path());
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run struck = runOf(result(), "hot_repair");
  ASSERT_EQ(struck.faults.size(), 8u);
  ASSERT_EQ(struck.evidence.size(), 8u);
  for (int strike = 0; strike < 2; ++strike) {
    double first_end = 1e9;
    double last_start = 0;
    for (int node = 0; node < 4; ++node) {
      const reports::AppliedFault& fault = struck.faults[2 * node + strike];
      EXPECT_EQ(fault.target.node, node);
      EXPECT_EQ(fault.target.rail, 1);
      first_end = std::min(first_end, *fault.end_ms);
      last_start = std::max(last_start, fault.start_ms);
    }
    EXPECT_LT(last_start, first_end) << "at one time all of its links were down";
  }
}

TEST_F(RunTest, ASequenceWaitsForTheEndAndForTheRecovery) {
  const Ran ran =
      runFaultline({"run", FAULTLINE_SOURCE_DIR "/scenarios/fault-sequence.yaml", "--out", out(),
                    "--set", "workload.time=8s", "--set", "expect=[wrong_elements == 0]"},
                   folder_.path());
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run run = runOf(result(), "hot_repair");
  ASSERT_EQ(run.faults.size(), 10u);  // one link, a rail of three, one link; twice each
  const auto recoveredFrom = [&](const reports::AppliedFault& fault) {
    for (const reports::Iteration& iteration : run.iterations) {
      // The first rank ends it a little before the last one, long after its half.
      if (iteration.start_ms > fault.start_ms) return iteration.start_ms + iteration.ms / 2;
    }
    return 1e9;
  };
  for (int turn = 0; turn < 2; ++turn) {
    const reports::AppliedFault& down = run.faults[turn];
    const reports::AppliedFault& slow = run.faults[2 + turn];
    const reports::AppliedFault& silent = run.faults[8 + turn];
    EXPECT_GE(slow.start_ms, recoveredFrom(down) + 200);
    EXPECT_GE(silent.start_ms, *slow.end_ms + 299.9);
    if (turn == 1) {
      EXPECT_GE(down.start_ms, *run.faults[8].end_ms + 499.9);
    }
  }
}

TEST_F(RunTest, WhenAProcessIsKilledTheOthersGoOnWithoutIt) {
  const Ran ran =
      runFaultline({"run", FAULTLINE_SOURCE_DIR "/scenarios/acceptance/process-kill-shrink.yaml",
                    "--out", out(), "--strategy", "shrink", "--set", "workload.iterations=40"},
                   folder_.path());
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run shrunk = runOf(result(), "shrink");
  EXPECT_EQ(shrunk.iterations.size(), 40u);
  EXPECT_EQ(shrunk.wrong_elements, 0);
  ASSERT_EQ(shrunk.shrinks.size(), 1u);
  EXPECT_EQ(shrunk.shrinks[0].missing, std::vector<int>{1});
  EXPECT_EQ(shrunk.shrinks[0].iteration, 20);
}

TEST_F(RunTest, TheRankBehindADeadPortIsExcludedAndTheOthersGoOn) {
  const Ran ran = runFaultline(
      {"run", FAULTLINE_SOURCE_DIR "/scenarios/acceptance/port-down-exclude-rank.yaml", "--out",
       out(), "--strategy", "exclude_rank", "--set", "workload.iterations=24"},
      folder_.path());
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run run = runOf(result(), "exclude_rank");
  EXPECT_EQ(run.iterations.size(), 24u);
  EXPECT_EQ(run.wrong_elements, 0);
  EXPECT_TRUE(run.failovers.empty()) << "there is none in AdapCC";
  ASSERT_EQ(run.exclusions.size(), 1u);
  EXPECT_EQ(run.exclusions[0].rank, 1);
  EXPECT_EQ(run.exclusions[0].rails, std::vector<int>{0});
  ASSERT_EQ(run.shrinks.size(), 1u);
  EXPECT_EQ(run.shrinks[0].missing, std::vector<int>{1});
  EXPECT_EQ(run.shrinks[0].iteration, 20) << "the interrupted one is done again";
}

TEST_F(RunTest, RanksAreExcludedOnce) {
  const Ran ran = run(scenarioText(
      "[{exclude_rank: {wait: 500ms}}]",
      "[{kind: port_down, target: {node: 1, rail: 0}, during: {iteration: 4}, until: end}, "
      "{kind: port_down, target: {node: 2, rail: 1}, during: {iteration: 8}, until: end}]"));
  EXPECT_EQ(ran.exit, 1) << ran.out << ran.err;
  const reports::Run run = runOf(result(), "exclude_rank");
  EXPECT_EQ(run.status, reports::RunStatus::kFailed) << "AdapCC survives one fault";
  EXPECT_THAT(run.message, HasSubstr("not done within 500ms"));
  EXPECT_EQ(run.exclusions.size(), 1u);
  EXPECT_EQ(run.shrinks.size(), 1u);
}

TEST_F(RunTest, TwoLossesOfOneLinkComeOneAfterTheOther) {
  const Ran ran = run(scenarioText(
      "[hot_repair]",
      "[{kind: loss, percent: 20%, target: {node: 1, rail: 0}, at: 100ms, duration: 300ms}, "
      "{kind: one_way_loss, target: {node: 1, rail: 0}, at: 200ms, duration: 200ms}]"));
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run both = runOf(result(), "hot_repair");
  ASSERT_EQ(both.faults.size(), 2u);
  EXPECT_GE(both.faults[1].start_ms, both.faults[0].end_ms);
}

TEST_F(RunTest, ArmedCostsNoFailover) {
  const Ran ran = run(scenarioText("[fault_free, armed]", "[]"));
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_TRUE(runOf(result(), "armed").failovers.empty());
}

}  // namespace
}  // namespace faultline::run
