#include "harness/record/command_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <stdexcept>

#include "harness/control/program_plan.h"
#include "harness/control/told_numbers.h"
#include "harness/launch/process.h"
#include "harness/scenario/reader.h"
#include "harness/site/addresses.h"
#include "tests/support/run_program.h"

// Ends and marks of the processes of a command in, the run's entry out.

namespace faultline::run {
namespace {

using faultline::testing::TemporaryFolder;
using reports::RunStatus;
using ::testing::HasSubstr;

constexpr TimePoint kCommandStart = TimePoint(1000s);
const command::NetworkNames kNetwork = networkNames(site::plannedNetwork(2, 1));
const FolderThere kSame = [](int, const std::string& folder) { return folder; };

TimePoint after(int ms) { return kCommandStart + ms * 1ms; }

scenario::Scenario commandScenario(const std::string& keys) {
  auto read = scenario::readScenario(
      "version: 1\nname: n\ncluster: {nodes: 2, rails: 1}\nworkload:\n  {kind: command, command: "
      "{run: [a, '{rank}'], env: {A: '{node}', B: common}, workdir: /tmp, progress: p, " +
          keys +
          "}}\nstrategies: [{unprotected: {as: plugin, env: {B: '{strategy}'}}}]\nrepeat: 2\n",
      "n");
  if (!read.ok()) throw std::runtime_error(read.mistakes.front().toString());
  return *std::move(read.scenario);
}

class CommandRecordTest : public ::testing::Test {
 protected:
  explicit CommandRecordTest(const std::string& keys = "per_node: 1")
      : scenario_(commandScenario(keys)),
        planned_{1, &scenario_.strategies.front(), reports::Arm::kFaulted},
        record_(scenario_, planned_) {
    record_.started(kCommandStart);
  }

  /// Whether the job is in another iteration than before.
  bool mark(int rank, int iteration, int ms) {
    const std::optional<int> before = record_.open();
    record_.progressed(rank, iteration, after(ms));
    return record_.open() != before;
  }
  void end(int rank, int ms, launch::ExitStatus status = {}) {
    record_.ended({.rank = rank,
                   .node = rank,
                   .at = after(ms),
                   .code = status.code,
                   .signal = status.signal,
                   .output = "folder"});
  }

  scenario::Scenario scenario_;
  PlannedRun planned_;
  CommandRecord record_;
};

class CommandWithMetricsTest : public CommandRecordTest {
 protected:
  CommandWithMetricsTest()
      : CommandRecordTest(
            "throughput: fast, metrics: {fast: {regex: 'v ([0-9]+)', unit: GB/s}, "
            "slow: {json: x.json, path: a.b, take: sum}}") {}
};

TEST_F(CommandRecordTest, WithoutAMetricThroughputIsRunsPerSecond) {
  end(1, 500);
  end(0, 2000);
  record_.told({});
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.status, RunStatus::kOk);
  EXPECT_EQ(run.strategy, "plugin");
  EXPECT_EQ(run.kind, "unprotected");
  EXPECT_EQ(run.options["env"]["B"], "{strategy}");
  EXPECT_EQ(run.duration_ms, 2000);
  ASSERT_TRUE(run.throughput);
  EXPECT_EQ(run.throughput->value, 0.5);
  EXPECT_EQ(run.throughput->unit, "runs/s");
  ASSERT_EQ(run.processes.size(), 2u);
  EXPECT_EQ(run.processes[0].rank, 0);
}

TEST_F(CommandRecordTest, ProgramsThatDidNotRunAtTheSameTimeHaveNoSpeed) {
  // Rank 1 has begun and ended before the controller hears that rank 0 has begun.
  CommandRecord record(scenario_, planned_);
  record.add(event::Started{after(-700)});
  record.add(event::Progressed{1, 0, after(-20)});
  record.add(event::ProgramEnded{1, 1, after(-3), 0, 0, "folder"});
  record.add(event::Started{after(0)});
  record.add(event::ProgramEnded{0, 0, after(2000), 0, 0, "folder"});
  const reports::Run run = record.finish({}).run;
  EXPECT_EQ(run.status, RunStatus::kOk);
  EXPECT_FALSE(run.throughput);
  EXPECT_EQ(run.duration_ms, 2000) << "and not the time in which the cluster was made, too";
  ASSERT_EQ(run.processes.size(), 2u);
  EXPECT_EQ(run.processes[1].at_ms, 0);
  ASSERT_EQ(run.iterations.size(), 1u);
  EXPECT_EQ(run.iterations[0].start_ms, -20);
}

TEST_F(CommandRecordTest, ASignalHasAnExitCodeAsShellsSay) {
  end(0, 100, {.code = 3, .signal = 0});
  end(1, 200, {.code = 0, .signal = 9});
  record_.failed(RunStatus::kFailed, "first");
  record_.failed(RunStatus::kHung, "second");
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.status, RunStatus::kFailed);
  EXPECT_EQ(run.message, "first");
  EXPECT_FALSE(run.throughput);
  EXPECT_FALSE(run.unfinished) << "it had begun no iteration";
  EXPECT_EQ(run.processes[0].exit_code, 3);
  EXPECT_EQ(run.processes[1].exit_code, 137);
  EXPECT_EQ(run.processes[1].signal, 9);
}

TEST_F(CommandRecordTest, TheJobIsWhereItsFurthestProcessIs) {
  EXPECT_TRUE(mark(0, 0, 10));
  EXPECT_FALSE(mark(1, 0, 12)) << "the same iteration";
  EXPECT_TRUE(mark(0, 1, 20));
  EXPECT_EQ(record_.open(), 1);
  EXPECT_TRUE(mark(0, 2, 30));
  EXPECT_FALSE(mark(1, 1, 35)) << "it only lags behind";
  EXPECT_EQ(record_.open(), 2);
  end(0, 50);
  end(1, 60);
  record_.told({});
  const reports::Run run = record_.finish({}).run;
  ASSERT_EQ(run.iterations.size(), 3u);
  EXPECT_EQ(run.iterations[1].start_ms, 20);
  EXPECT_EQ(run.iterations[1].ms, 10);
  EXPECT_EQ(run.iterations[2].ms, 30) << "until the last process ended";
}

TEST_F(CommandRecordTest, ACommunicatorThatWasMadeAnewIsOneOfFewerRanksOrOfAsMany) {
  mark(0, 3, 10);
  record_.rebuilt({.noticed = after(100), .resumed = after(150), .ranks = 1, .missing = {1}},
                  after(90));
  record_.rebuilt({.noticed = after(200), .resumed = after(260), .ranks = 2, .missing = {}},
                  std::nullopt);
  const reports::Run run = record_.finish({}).run;
  ASSERT_EQ(run.shrinks.size(), 1u);
  EXPECT_EQ(run.shrinks[0].fault_ms, 90);
  EXPECT_EQ(run.shrinks[0].noticed_ms, 100);
  EXPECT_EQ(run.shrinks[0].resumed_ms, 150);
  EXPECT_EQ(run.shrinks[0].ranks, 1);
  EXPECT_EQ(run.shrinks[0].missing, std::vector<int>{1});
  EXPECT_EQ(run.shrinks[0].iteration, 3);
  ASSERT_EQ(run.rebuilds.size(), 1u);
  EXPECT_EQ(run.rebuilds[0].fault_ms, std::nullopt);
  EXPECT_EQ(run.rebuilds[0].noticed_ms, 200);
  EXPECT_EQ(run.rebuilds[0].resumed_ms, 260);
  EXPECT_EQ(run.rebuilds[0].ranks, 2);
}

TEST_F(CommandRecordTest, AProcessThatGoesBackTakesTheJobAlong) {
  for (int iteration = 0; iteration < 4; ++iteration) mark(0, iteration, 10 * iteration);
  EXPECT_TRUE(mark(0, 2, 100));
  EXPECT_EQ(record_.open(), 2);
}

TEST_F(CommandRecordTest, AnIterationThatIsDoneAgainLastsFromItsFirstBegin) {
  for (int iteration = 0; iteration < 4; ++iteration) mark(0, iteration, 10 * iteration);
  mark(0, 2, 1000);
  mark(0, 3, 1010);
  end(0, 1020);
  end(1, 1020);
  record_.told({});
  const reports::Run run = record_.finish({}).run;
  ASSERT_EQ(run.iterations.size(), 5u) << "0, 1, 2, 2 again, 3";
  EXPECT_EQ(run.iterations[3].ms, 10) << "it had ended before";
  EXPECT_EQ(run.iterations[4].start_ms, 30);
  EXPECT_EQ(run.iterations[4].ms, 990);
  EXPECT_EQ(run.iterations[4].attempts, 2);
}

TEST_F(CommandRecordTest, AnIterationThatIsNotBegunAgainLastsUntilTheProgramWentBack) {
  for (int iteration = 0; iteration < 4; ++iteration) mark(0, iteration, 10 * iteration);
  mark(0, 0, 1000);
  end(0, 1020);
  end(1, 1020);
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.iterations.back().index, 3);
  EXPECT_EQ(run.iterations.back().ms, 970);
}

TEST_F(CommandRecordTest, AnIterationInWhichTheRunFailsIsNone) {
  mark(0, 0, 10);
  mark(0, 1, 20);
  record_.failed(RunStatus::kFailed, "rank 0");
  end(0, 30, {.code = 1, .signal = 0});
  end(1, 40);
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.iterations.size(), 1u);
  ASSERT_TRUE(run.unfinished);
  EXPECT_EQ(run.unfinished->index, 1);
  EXPECT_EQ(run.unfinished->ms, 20) << "until the last process ended";
}

TEST_F(CommandRecordTest, AFaultThatNobodySawMakesTheRunInvalid) {
  end(0, 10);
  end(1, 10);
  Observed observed;
  observed.invalidBecause = "port_down never triggered";
  record_.told({.problem = "no metric"});
  const reports::Run run = record_.finish(std::move(observed)).run;
  EXPECT_EQ(run.status, RunStatus::kInvalid);
  EXPECT_EQ(run.message, "port_down never triggered");
}

TEST_F(CommandWithMetricsTest, WhatIsToldIsReadFromTheFoldersOfTheProcesses) {
  const TemporaryFolder one, two;
  one.write("stdout.txt", "v 1\nv 2\n");
  two.write("stderr.txt", "v 3\n");
  one.write("x.json", R"({"a": {"b": 5}})");
  two.write("x.json", R"({"a": {"b": 7}})");
  const std::vector<std::string> folders{one.path().string(), two.path().string()};
  end(0, 1000);
  end(1, 1000);
  record_.told({.numbers = toldNumbers(scenario_.workload.command.metrics, folders).value()});
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.status, RunStatus::kOk) << run.message;
  EXPECT_EQ(run.metrics.at("fast").value, 3);
  EXPECT_EQ(run.metrics.at("slow").value, 12);
  ASSERT_TRUE(run.throughput);
  EXPECT_EQ(run.throughput->value, 3);
  EXPECT_EQ(run.throughput->unit, "GB/s");
}

TEST_F(CommandWithMetricsTest, WhatIsMissingMakesTheRunInvalidAndSaysWhat) {
  const TemporaryFolder folder;
  const auto missing = [&] {
    return toldNumbers(scenario_.workload.command.metrics, {folder.path().string()})
        .status()
        .message();
  };
  EXPECT_THAT(missing(), HasSubstr("metric fast: nothing that the processes printed matches"));
  folder.write("stdout.txt", "v 1\n");
  EXPECT_THAT(missing(), HasSubstr("metric slow: no process has written x.json"));
  folder.write("x.json", R"({"a": {}})");
  EXPECT_THAT(missing(), HasSubstr("metric slow: x.json of rank 0: it has no 'a.b'"));
  record_.told({.problem = "metric fast: not there"});
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.status, RunStatus::kInvalid);
  EXPECT_EQ(run.message, "metric fast: not there");
}

TEST_F(CommandWithMetricsTest, OfARunThatFailsThereIsWhatWasToldBefore) {
  const TemporaryFolder folder;
  folder.write("stdout.txt", "v 1\n");
  folder.write("x.json", R"({"a": {"b": "no number"}})");
  record_.failed(RunStatus::kFailed, "rank 0: exit code 3");
  record_.told(
      {.numbers = toldBeforeFailure(scenario_.workload.command.metrics, {folder.path().string()})});
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.status, RunStatus::kFailed);
  ASSERT_EQ(run.metrics.size(), 1U);
  EXPECT_EQ(run.metrics.at("fast").value, 1);
  EXPECT_FALSE(run.throughput) << "it is none of a whole run";
}

TEST_F(CommandRecordTest, EachProcessGetsItsArgumentsAndItsEnvironment) {
  const auto plan = planPrograms(scenario_, planned_, "/out", kNetwork, kSame);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->processes.size(), 2u);
  const ProgramPlan::Process& process = plan->processes[1];
  EXPECT_EQ(process.node, 1);
  EXPECT_EQ(process.folder, "/out/rank1");
  EXPECT_EQ(process.progress, "/out/rank1/p");
  EXPECT_THAT(process.program.arguments, ::testing::ElementsAre("a", "1"));
  EXPECT_EQ(process.program.environment.at("A"), "1");
  EXPECT_EQ(process.program.environment.at("B"), "plugin") << "the row's replaces the workload's";
  EXPECT_EQ(process.program.environment.at("RANK"), "1");
  EXPECT_EQ(process.program.environment.at("FAULTLINE_BLOCK"), "1");
  EXPECT_EQ(process.program.stdoutPath, "/out/rank1/stdout.txt");
}

TEST_F(CommandRecordTest, AProcessOfAHostIsToldOfTheFoldersThere) {
  scenario_.workload.command.workingDirectory.clear();
  const auto plan = planPrograms(
      scenario_, planned_, "/out", kNetwork,
      [](int node, const std::string&) { return fmt::format("/tmp/of-host-{}", node); });
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const ProgramPlan::Process& process = plan->processes[1];
  EXPECT_EQ(process.folder, "/out/rank1");
  EXPECT_EQ(process.progress, "/out/rank1/p");
  EXPECT_EQ(process.program.environment.at("FAULTLINE_OUTPUT"), "/tmp/of-host-1/rank1");
  EXPECT_EQ(process.program.environment.at("FAULTLINE_PROGRESS"), "/tmp/of-host-1/rank1/p");
  EXPECT_EQ(process.program.stderrPath, "/tmp/of-host-1/rank1/stderr.txt");
  EXPECT_EQ(process.program.workingDirectory, "/tmp/of-host-1/rank1") << "none was named";
}

TEST_F(CommandRecordTest, LibrariesThatAProcessIsToLoadMustBeThereByTheirPaths) {
  scenario_.workload.command.environment = {{"LD_PRELOAD", "/lib/a.so:b.so /lib/c.so"},
                                            {"NCCL_NET_PLUGIN", "/opt/plugin.so"},
                                            {"OTHER", "/nowhere"}};
  const auto plan = planPrograms(scenario_, planned_, "/out", kNetwork, kSame);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_THAT(plan->processes[0].needs,
              ::testing::ElementsAre("/lib/a.so", "/lib/c.so", "/opt/plugin.so"));
}

TEST(NcclProgramTest, TheRowsKindComesBetweenTheWorkloadAndTheRow) {
  const auto read = scenario::readScenario(
      "version: 1\nname: n\ncluster: {nodes: 2, rails: 1}\nworkload:\n  {kind: command, command: "
      "{run: [a], env: {NCCL_IB_RESILIENCY_PORT_FAILOVER: '0', NCCL_DEBUG: INFO}}}\nstrategies: "
      "[{nccl: {mode: port_failover, env: {NCCL_NET_MERGE_LEVEL: PXB}}}]\nfaults: [{kind: "
      "port_down, "
      "target: {node: 1, rail: 0}, at: 1s, duration: 1s}]\n",
      "n");
  ASSERT_TRUE(read.ok()) << read.mistakes.front().toString();
  const auto plan =
      planPrograms(*read.scenario, {0, &read.scenario->strategies.front(), reports::Arm::kFaulted},
                   "/out", kNetwork, kSame);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto& environment = plan->processes[0].program.environment;
  EXPECT_EQ(environment.at("NCCL_IB_RESILIENCY_PORT_FAILOVER"), "1") << "the row is what it says";
  EXPECT_EQ(environment.at("NCCL_NET_MERGE_LEVEL"), "PXB") << "unless its own 'env' says otherwise";
  EXPECT_EQ(environment.at("NCCL_DEBUG"), "INFO");
}

TEST(FindExecutableTest, SaysWhatIsThereAndWhatIsNot) {
  const TemporaryFolder folder;
  const std::string file = folder.write("program", "#!/bin/sh\n");
  const std::string path = "/nowhere:" + folder.path().string();
  EXPECT_EQ(findExecutable("program", "", path).status().code(), Code::kPermissionDenied);
  ASSERT_EQ(::chmod(file.c_str(), 0755), 0);
  EXPECT_EQ(*findExecutable("program", "", path), file);
  EXPECT_EQ(*findExecutable("./program", folder.path().string(), path),
            folder.path().string() + "/./program");
  EXPECT_THAT(findExecutable("other", "", path).status().message(),
              HasSubstr("no program 'other' in PATH"));
  EXPECT_EQ(findExecutable("./other", "", path).status().code(), Code::kNotFound);
  EXPECT_FALSE(findExecutable(folder.path().string(), "", path).ok()) << "a folder";
}

TEST(FindOwnLibraryTest, IsInTheBuildOrWhereItWasInstalled) {
  const TemporaryFolder folder;
  const std::string programs = folder.path() / "bin";
  std::filesystem::create_directories(programs);
  EXPECT_EQ(launch::findOwnLibrary("a.so", "some/folder", programs), "");
  std::filesystem::create_directories(folder.path() / "lib");
  const std::string installed = folder.write("lib/a.so", "");
  EXPECT_EQ(launch::findOwnLibrary("a.so", "some/folder", programs), installed);
  std::filesystem::create_directories(programs + "/some/folder");
  const std::string built = folder.write("bin/some/folder/a.so", "");
  EXPECT_EQ(launch::findOwnLibrary("a.so", "some/folder", programs), built);
}

}  // namespace
}  // namespace faultline::run
