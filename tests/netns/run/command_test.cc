#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "harness/agent/guard.h"
#include "harness/launch/process.h"
#include "reports/result_json.h"
#include "tests/support/namespace_observer.h"
#include "tests/support/poll_until.h"
#include "tests/support/run_program.h"
#include "tests/support/victim.h"
#include "wire/guard.h"

// Programs that are not ours under the real program: how they end, what they tell, and that nothing
// of them is left.

namespace faultline::run {
namespace {

using faultline::testing::Ran;
using faultline::testing::runFaultline;
using faultline::testing::TemporaryFolder;
using reports::ScenarioResult;
using test::NamespaceObserver;
using test::Victim;
using ::testing::HasSubstr;

constexpr const char* kProgram = FAULTLINE_BINARY_DIR "/faultline";

std::string textOfFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// How many processes of the machine have `word` in their command line.
int processesWith(const std::string& word) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string line = textOfFile(entry.path() / "cmdline");
    count += line.find(word) != std::string::npos ? 1 : 0;
  }
  return count;
}

class CommandRunTest : public ::testing::Test {
 protected:
  /// A scenario that runs `script` in a shell on two nodes; `keys` of the command, and the rest.
  std::string file(const std::string& script, const std::string& keys, const std::string& more) {
    return folder_.write(
        "scenario.yaml",
        fmt::format(
            "version: 1\nname: command\ncluster: {{nodes: 2, rails: 1, rail_rate: "
            "100Mbit}}\nlimits: {{deadline: 20s}}\nworkload:\n  kind: command\n  command:\n"
            "    run:\n      - sh\n      - -c\n      - |\n        # {}\n        {}\n      - "
            "'{}'\n{}\n{}",
            marker(), script, marker(), keys, more));
  }
  Ran run(const std::string& script, const std::string& keys, const std::string& more) {
    return runFaultline({"run", file(script, keys, more), "--out", out(), "--force"},
                        folder_.path());
  }
  std::string out() const { return folder_.path() / "out put"; }
  ScenarioResult result() const {
    auto read = reports::readResult(out());
    if (!read.ok()) throw std::runtime_error(read.status().message());
    return std::move(*read);
  }
  /// In the command line of everything that a test starts.
  std::string marker() const { return folder_.path().filename(); }

  TemporaryFolder folder_;
};

TEST_F(CommandRunTest, EveryProcessKnowsItsPlaceAndTellsItsNumbers) {
  const Ran ran = run(
      R"(echo "rank $RANK of $WORLD_SIZE at $FAULTLINE_ADDRESS, speed 1{local_rank}.5"
        ls /proc | grep -c '^[0-9]*$' > processes
        cat /sys/class/net/rail0/operstate >&2
        echo "{\"rank\": {rank}}" > told.json)",
      R"(    per_node: 2
    workdir: "{output}"
    metrics:
      speed: {regex: 'speed ([0-9.]+)', unit: GB/s, take: mean}
      ranks: {json: told.json, path: rank, take: sum}
    throughput: speed)",
      "strategies: [{armed: {as: own, env: {ROW: 'of {strategy}'}}}]\n"
      "expect: [own.status == ok, own.exit_code == 0, own.metrics.speed == 11, "
      "own.metrics.ranks == 6, own.throughput.median == 11]\n");
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const std::filesystem::path outputs = out() + "/command-own-0";
  EXPECT_EQ(textOfFile(outputs / "rank3/stdout.txt"), "rank 3 of 4 at 10.0.0.2, speed 11.5\n");
  EXPECT_EQ(textOfFile(outputs / "rank2/stderr.txt"), "up\n");
  // The guard, two shells, and what they call: of the machine's processes none.
  EXPECT_LE(std::stoi(textOfFile(outputs / "rank0/processes")), 8);
  EXPECT_THAT(ran.out, HasSubstr("Checked elements: none."));
  EXPECT_THAT(ran.out, HasSubstr("own: exit codes 0; ranks 6.00; speed 11.00 GB/s"));
  EXPECT_THAT(textOfFile(out() + "/results.csv"),
              HasSubstr("exit_codes,metric_ranks,metric_speed\n"));
}

TEST_F(CommandRunTest, IdleProcessorsAreKeptAwakeMeanwhileOrItSaysWhyNot) {
  const Ran ran = run("od -A n -t d4 /dev/cpu_dma_latency > latency", R"(    workdir: "{output}")",
                      "strategies: [armed]\nnoise: {keep_awake: on}\n");
  const ScenarioResult told = result();
  if (ran.exit != 0) {
    EXPECT_EQ(told.verdict, reports::Verdict::kError);
    EXPECT_TRUE(told.runs.empty()) << "runs that are not what was asked for";
    EXPECT_THAT(told.reason, HasSubstr("--set noise.keep_awake=off"));
    GTEST_SKIP() << told.reason;
  }
  EXPECT_EQ(std::stoi(textOfFile(out() + "/command-armed-0/rank0/latency")), 0);
  EXPECT_THAT(told.notes, ::testing::Contains(HasSubstr("kept awake")));
}

TEST_F(CommandRunTest, AnExitCodeEndsTheRunAndIsAResult) {
  const Ran ran =
      run(R"([ {node} = 1 ] || exec sleep 60
        echo "last words: busbw 5" >&2
        exit 3)",
          "    metrics: {busbw: {regex: 'busbw ([0-9.]+)'}, lost: {regex: 'lost ([0-9]+)'}}",
          "strategies: [armed]\n"
          "expect: [armed.status == failed, armed.metrics.busbw == 5]\n");
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run made = result().runs.at(0);
  EXPECT_EQ(made.message, "rank 1 on node 1: exit code 3; see command-armed-0/rank1/stderr.txt");
  ASSERT_EQ(made.processes.size(), 2u);
  EXPECT_EQ(made.processes[0].signal, SIGTERM) << "the other one was asked to end";
  EXPECT_EQ(made.processes[1].exit_code, 3);
  EXPECT_LT(made.duration_ms, 5000);
  EXPECT_EQ(made.metrics.size(), 1u) << "what it told before it failed";
  EXPECT_THAT(textOfFile(out() + "/log.txt"), HasSubstr("last words"));
}

TEST_F(CommandRunTest, AProgramThatIsNotThereIsSaidToBeSo) {
  const std::string scenario = file("true", "", "strategies: [armed]\n");
  const Ran ran = runFaultline(
      {"run", scenario, "--out", out(), "--set", "workload.command.run.0=no-such-program"},
      folder_.path());
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, HasSubstr("there is no program 'no-such-program' in PATH"));
}

TEST_F(CommandRunTest, ANumberThatIsNotToldMakesTheRunInvalid) {
  const Ran ran = run("echo nothing", "    metrics: {busbw: {regex: 'busbw ([0-9.]+)'}}",
                      "strategies: [armed]\n");
  EXPECT_EQ(ran.exit, 5) << ran.out << ran.err;
  EXPECT_THAT(result().reason, HasSubstr("metric busbw: nothing that the processes printed"));
}

TEST_F(CommandRunTest, WhatTakesTooLongIsEndedWithEverythingThatItStarted) {
  // In a session of its own, its parent gone, and deaf to SIGTERM.
  const Ran ran =
      run(R"(trap '' TERM
        (trap '' TERM; setsid sh -c 'trap "" TERM; while :; do sleep 0.05; done' )" +
              marker() +
              R"( &)
        while :; do sleep 0.05; done)",
          "    time_limit: 500ms", "strategies: [armed]\nexpect: [armed.status == hung]\n");
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run made = result().runs.at(0);
  EXPECT_THAT(made.message, HasSubstr("not over within 500ms"));
  ASSERT_EQ(made.processes.size(), 2u);
  EXPECT_EQ(made.processes[0].signal, SIGKILL);
  EXPECT_EQ(processesWith(marker()), 0);
}

TEST_F(CommandRunTest, NothingIsLeftWhenFaultlineIsKilled) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::string scenario =
      file("(setsid sh -c 'while :; do sleep 0.05; done' " + marker() +
               " &)\n        echo running > running; while :; do sleep 0.05; done",
           "    workdir: '{output}'", "strategies: [armed]\n");
  for (const auto targets : {Victim::Targets::kProgramAlone, Victim::Targets::kWholeGroup}) {
    std::filesystem::remove_all(out());
    auto observer = NamespaceObserver::make();
    ASSERT_TRUE(observer.ok()) << observer.status().message();
    Victim victim({kProgram, "run", scenario, "--out", out()}, Victim::Listen::kStderr);
    ASSERT_TRUE(victim.awaitOutput("[1/1]", 20s));
    ASSERT_TRUE(test::pollUntil(
        10s, [&] { return std::filesystem::exists(out() + "/command-armed-0/rank1/running"); }));
    ASSERT_TRUE(test::pollUntil(10s, [&] { return processesWith(marker()) >= 5; }));
    ASSERT_TRUE(victim.killAndWatch(targets, *observer));
    EXPECT_GE(observer->watched(), 3) << "two nodes and the switch";
    EXPECT_TRUE(victim.allGone(*observer, 2s));
    EXPECT_TRUE(test::pollUntil(2s, [&] { return processesWith(marker()) == 0; }));
  }
}

// Small datagrams to a port where nobody listens; node 0 alone runs it.
constexpr const char* kDatagrams = R"(for i in 0 1 2 3 4 5; do
          echo $i >> "$FAULTLINE_PROGRESS"
          for k in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
            bash -c 'head -c 1400 /dev/zero > /dev/udp/{rail_0_address_1}/9'
          done
        done)";
constexpr const char* kDuring =
    "strategies: [unprotected]\n"
    "faults: [{kind: port_down, target: {node: 1, rail: 0}, "
    "during: {iteration: 3, progress: 50%}, duration: 20ms}]\n";

TEST_F(CommandRunTest, AFaultStrikesInTheIterationThatTheProgramTellsOf) {
  const Ran ran = run(kDatagrams, "    nodes: [0]\n    progress: progress",
                      std::string(kDuring) + "expect: [unprotected.iterations.count == 6]\n");
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run made = result().runs.at(0);
  ASSERT_EQ(made.faults.size(), 1u);
  ASSERT_TRUE(made.faults[0].hit);
  EXPECT_TRUE(made.faults[0].hit->ok) << made.faults[0].hit->detail;
  EXPECT_EQ(made.faults[0].hit->iteration, 3);
  ASSERT_EQ(made.iterations.size(), 6u);
  EXPECT_GT(made.faults[0].start_ms, made.iterations[3].start_ms);
  EXPECT_LT(made.faults[0].start_ms, made.iterations[3].start_ms + made.iterations[3].ms);
}

TEST_F(CommandRunTest, WithoutItsProgressFileTheFaultNeverTriggers) {
  const Ran ran = run("true", "    nodes: [0]\n    progress: progress", kDuring);
  EXPECT_EQ(ran.exit, 5) << ran.out << ran.err;
  EXPECT_THAT(result().reason,
              HasSubstr("never triggered: no process told that iteration 3 began"));
}

TEST_F(CommandRunTest, WithoutBytesOnTheRailsTheReportSaysWhatToDo) {
  const Ran ran = run("for i in 0 1 2 3 4; do echo $i >> \"$FAULTLINE_PROGRESS\"; sleep 0.05; done",
                      "    nodes: [0]\n    progress: progress", kDuring);
  EXPECT_EQ(ran.exit, 5) << ran.out << ran.err;
  EXPECT_THAT(result().reason, HasSubstr("the rails of node 1 carried nothing"));
  EXPECT_THAT(result().reason, HasSubstr("or strike 'at' a time"));
}

// Programs of a "communicator" that is a file in a common folder: each looks at its own port, and
// at what the others told. No NCCL, but the real fault, and the protocol of docs/command.md.

/// Until the fault, then $1 of both processes, then 0.2 s of work.
std::string whenThePortIsDown(const std::string& then) {
  return R"sh(common="{output}/.."
        echo 0 >> "{progress}"
        while [ "$(cat /sys/class/net/rail0/operstate)" = up ] && ! [ -e "$common/failed" ]; do
          sleep 0.01
        done
        touch "$common/failed"
        told() { echo "$1" >> "$FAULTLINE_NCCL_RECOVERY_FILE"; }
        )sh" +
         then + "\n        sleep 0.2";
}

constexpr const char* kPortDownEarly =
    "faults: [{kind: port_down, target: {node: 1, rail: 0}, at: 300ms, duration: 700ms}]\n";

TEST_F(CommandRunTest, AllMakeTheirCommunicatorAnew) {
  const Ran ran = run(whenThePortIsDown(R"([ "$FAULTLINE_NCCL_RECOVERY" = abort_reinit ] || exit 9
        [ "$FAULTLINE_NCCL_WAIT_MS" = 700 ] || exit 8
        told failed; sleep 0.1; told 'rebuilt 2')"),
                      "    progress: progress",
                      std::string("strategies: [{nccl: {mode: abort_reinit, wait: 700ms}}]\n") +
                          kPortDownEarly +
                          "expect: [nccl.status == ok, nccl.rebuilds.count == 1, "
                          "nccl.rebuilds.rebuild_ms >= 50, nccl.rebuilds.notice_ms >= 0]\n");
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run made = result().runs.at(0);
  EXPECT_EQ(made.options["mode"], "abort_reinit");
  ASSERT_EQ(made.rebuilds.size(), 1u);
  EXPECT_EQ(made.rebuilds[0].ranks, 2);
  EXPECT_EQ(made.rebuilds[0].fault_ms, made.faults.at(0).start_ms);
  EXPECT_TRUE(made.shrinks.empty());
}

TEST_F(CommandRunTest, TheRanksBehindThePortLeaveAndTheOthersShrink) {
  const Ran ran = run(whenThePortIsDown(R"(told failed
        if [ {node} = 1 ]; then told left; exit 0; fi
        told 'rebuilt 1')"),
                      "    progress: progress",
                      std::string("strategies: [{nccl: {mode: shrink}}]\n") + kPortDownEarly +
                          "expect: [nccl.status == ok, nccl.shrinks.ranks == 1]\n");
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run made = result().runs.at(0);
  ASSERT_EQ(made.shrinks.size(), 1u);
  EXPECT_EQ(made.shrinks[0].missing, std::vector<int>{1});
  EXPECT_GE(made.shrinks[0].noticed_ms, made.faults.at(0).start_ms);
}

constexpr const char* kKilled =
    "faults: [{kind: process_kill, target: {node: 1}, at: 300ms, until: end}]\n";

TEST_F(CommandRunTest, OthersGoOnWithoutAProcessThatIsKilled) {
  // The one that is left learns of it as late as it likes: here by a clock.
  const std::string script = R"([ {node} = 1 ] && exec sleep 60
        sleep 1
        echo failed >> "$FAULTLINE_NCCL_RECOVERY_FILE"
        echo 'rebuilt 1' >> "$FAULTLINE_NCCL_RECOVERY_FILE"
        sleep 0.2)";
  const Ran ran = run(script, "",
                      std::string("strategies: [{nccl: {mode: shrink}}, unprotected]\n") + kKilled +
                          "expect: [nccl.status == ok, nccl.shrinks.ranks == 1, "
                          "unprotected.status == failed]\n");
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run made = result().runs.at(0);
  ASSERT_EQ(made.shrinks.size(), 1u);
  EXPECT_EQ(made.shrinks[0].missing, std::vector<int>{1});
  EXPECT_EQ(made.processes.at(1).signal, SIGKILL);
}

TEST_F(CommandRunTest, AProgramThatTakesNoPartProvesNothing) {
  const Ran ran =
      run("sleep 1.2", "", std::string("strategies: [{nccl: {mode: shrink}}]\n") + kPortDownEarly);
  EXPECT_EQ(ran.exit, 5) << ran.out << ran.err;
  EXPECT_THAT(result().reason, HasSubstr("no process told that its communicator failed"));
}

TEST_F(CommandRunTest, WhatCannotBeUnderstoodFailsTheRun) {
  const Ran ran = run(R"(echo rebuilt >> "$FAULTLINE_NCCL_RECOVERY_FILE"; sleep 30)", "",
                      std::string("strategies: [{nccl: {mode: shrink}}]\n") + kPortDownEarly +
                          "expect: [nccl.status == failed]\n");
  EXPECT_EQ(result().runs.at(0).status, reports::RunStatus::kFailed) << ran.out << ran.err;
  EXPECT_THAT(result().runs.at(0).message, HasSubstr("'rebuilt' is none of 'failed'"));
}

TEST_F(CommandRunTest, AGuardThatIsNotTheFirstOfItsNamespaceRefuses) {
  // Its job cannot be understood, so that nothing happens should it not refuse.
  launch::SpawnOptions options;
  options.body = agent::guardMain;
  options.first_message = nlohmann::json::object({{"no", "job"}});
  auto guard = launch::Process::spawn(options);
  ASSERT_TRUE(guard.ok()) << guard.status().message();
  const auto answer = guard->messages().receiveWithin(10s);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  const auto said = wire::fromJson<wire::FromGuard>(*answer);
  ASSERT_TRUE(said.ok()) << said.status().message();
  EXPECT_THAT(std::get<wire::GuardError>(*said).outcome.message,
              HasSubstr("must be the first process"));
}

TEST_F(CommandRunTest, ARealProgramLosesItsPortAndTellsHowFastItWas) {
  const Ran ran =
      runFaultline({"run", FAULTLINE_SOURCE_DIR "/scenarios/command-iperf3.yaml", "--out", out()});
  if (ran.err.find("there is no program") != std::string::npos) GTEST_SKIP() << ran.err;
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
}

TEST_F(CommandRunTest, GlooUnderTorchrunHasNoFailover) {
  if (std::system("command -v torchrun > /dev/null && /usr/bin/python3 -c 'import "
                  "torch.distributed as d; raise SystemExit(not d.is_gloo_available())' "
                  "2> /dev/null") != 0) {
    GTEST_SKIP() << "no torchrun, or no PyTorch with gloo: apt-get install python3-torch";
  }
  const Ran ran = runFaultline(
      {"run", FAULTLINE_SOURCE_DIR "/scenarios/command-torchrun.yaml", "--out", out()});
  ASSERT_EQ(ran.exit, 0) << ran.out << ran.err;
  const ScenarioResult result = this->result();
  ASSERT_EQ(result.runs.size(), 2u);
  EXPECT_EQ(result.runs[0].iterations.size(), 40u);
  EXPECT_EQ(result.runs[1].iterations.size(), 20u) << "that which was struck never ended";
  ASSERT_EQ(result.runs[1].faults.size(), 1u);
  ASSERT_TRUE(result.runs[1].faults[0].hit);
  EXPECT_THAT(result.runs[1].faults[0].hit->detail, HasSubstr("on 1 of 1 ranks"));
  std::string told;
  for (const char* rank : {"/rank0", "/rank1"}) {
    told += textOfFile(out() + "/command-unprotected-0" + rank + "/stderr.txt");
  }
  EXPECT_THAT(told, HasSubstr("Timed out waiting 5000ms"));
}

}  // namespace
}  // namespace faultline::run
