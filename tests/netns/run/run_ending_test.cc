#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/random.h"
#include "tests/netns/run/run_fixture.h"
#include "tests/support/namespace_observer.h"
#include "tests/support/poll_until.h"
#include "tests/support/victim.h"

// How runs end that do not end by themselves, runs beside each other, and runs of somebody who is
// not root: nothing is ever left.

namespace faultline::run {
namespace {

using reports::RunStatus;
using reports::Verdict;
using test::NamespaceObserver;
using test::Victim;
using testing::Ran;
using testing::runFaultline;

constexpr const char* kBinary = FAULTLINE_BINARY_DIR "/faultline";

TEST_F(RunTest, TwoRunsAtOnceDoNotDisturbEachOther) {
  const std::string file = folder_.write(
      "scenario.yaml", scenarioText("[fault_free, hot_repair]", portDown("carrier", "200ms")));
  std::vector<std::unique_ptr<Victim>> victims;
  for (const char* name : {"a", "b"}) {
    victims.push_back(std::make_unique<Victim>(
        std::vector<std::string>{kBinary, "run", file, "--out", folder_.path() / name}));
  }
  for (const auto& victim : victims) {
    int status = 0;
    ASSERT_EQ(::waitpid(victim->pid(), &status, 0), victim->pid());
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

TEST_F(RunTest, ARunWithTheFolderOfAKilledOneStartsAtTheBeginning) {
  const std::string faults =
      "[{kind: port_down, target: {node: 1, rail: 0}, at: 20s, duration: 20s}]";
  const std::string text =
      scenarioText("[{fail_stop: {watchdog: 500ms, checkpoint_every: 5}}]", faults);
  const std::string file = folder_.write("killed.yaml", text);
  {
    Victim victim({kBinary, "run", file, "--out", out(), "--set", "workload.iterations=2000"},
                  Victim::Listen::kStderr);
    ASSERT_TRUE(victim.awaitOutput("[1/1]", 20s));
    ASSERT_TRUE(test::pollUntil(
        20s, [&] { return std::filesystem::exists(out() + "/checkpoints-0/rank2"); }));
    ::kill(-victim.pid(), SIGKILL);
  }
  (void)run(text);
  const reports::Run second = runOf(result(), "fail_stop");
  ASSERT_FALSE(second.iterations.empty());
  EXPECT_EQ(second.iterations.front().index, 0);
}

TEST_F(RunTest, AnEarlierResultIsReplacedOnlyWithForceAndOnlyByAWholeOne) {
  const std::string text = scenarioText("[fault_free]", "[]", "[]");
  const std::string file = folder_.write("again.yaml", text);
  const auto runWith = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", file, "--out", out()});
    return runFaultline(more, folder_.path());
  };
  ASSERT_EQ(runWith({"--seed", "1"}).exit, 0);
  const Ran refused = runWith({"--seed", "2"});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("--force"), std::string::npos) << refused.err;
  {
    Victim victim({kBinary, "run", file, "--out", out(), "--force", "--seed", "3", "--set",
                   "workload.iterations=2000"},
                  Victim::Listen::kStderr);
    ASSERT_TRUE(victim.awaitOutput("[1/1]", 20s));
    ::kill(-victim.pid(), SIGINT);
    ASSERT_TRUE(test::pollUntil(
        20s, [&] { return std::filesystem::exists(out() + "/unfinished/report.html"); }));
  }
  EXPECT_EQ(result().seed, 1u) << "the interrupted run has left it as it was";
  ASSERT_EQ(runWith({"--force", "--seed", "4"}).exit, 0);
  EXPECT_EQ(result().seed, 4u);
  EXPECT_FALSE(std::filesystem::exists(out() + "/unfinished"));
}

TEST_F(RunTest, TwoRunsIntoOneFolderAreRefused) {
  const std::string file = folder_.write("first.yaml", scenarioText("[fault_free]", "[]", "[]"));
  Victim first({kBinary, "run", file, "--out", out(), "--set", "workload.iterations=2000"},
               Victim::Listen::kStderr);
  ASSERT_TRUE(first.awaitOutput("[1/1]", 20s));
  const Ran second = run(scenarioText("[fault_free]", "[]", "[]"));
  EXPECT_EQ(second.exit, 2) << second.out << second.err;
  EXPECT_NE(second.err.find("--out"), std::string::npos) << second.err;
}

TEST_F(RunTest, ARunWhoseReaderHasLeftGoesOnToItsEnd) {
  const std::string file = folder_.write("scenario.yaml", scenarioText("[fault_free]", "[]"));
  const Ran ran = testing::runProgram(
      "/bin/sh", {"-c", R"({ "$0" run "$1" --out "$2" 2>&1; echo $? > "$2/exit"; } | head -1)",
                  kBinary, file, out()});
  EXPECT_EQ(ran.out, out() + "\n");
  EXPECT_EQ(result().verdict, Verdict::kPass);
  int exit = -1;
  std::ifstream(out() + "/exit") >> exit;
  EXPECT_EQ(exit, 0);
}

TEST_F(RunTest, WhatHadHappenedIsInTheResultOfARunThatWasCutOff) {
  const std::string file =
      folder_.write("scenario.yaml", scenarioText("[hot_repair]", portDown("carrier", "300ms")));
  const Ran ran = runFaultline({"run", file, "--out", out(), "--set", "workload.iterations=5000",
                                "--set", "limits.deadline=8s"});
  EXPECT_EQ(ran.exit, 1) << ran.out << ran.err;
  const reports::Run cut = runOf(result(), "hot_repair");
  EXPECT_EQ(cut.status, RunStatus::kHung) << cut.message;
  EXPECT_GE(cut.failovers.size(), 1u);
  EXPECT_GE(cut.failbacks.size(), 1u);
  EXPECT_GT(cut.counters.at("chunks_sent"), 0);
}

TEST_F(RunTest, WhatHappenedInAnIterationThatNeverEndsIsInTheResult) {
  const auto down = [](int rail, const char* when) {
    return fmt::format(
        "{{kind: port_down, how: carrier, target: {{node: 1, rail: {}}}, {}, until: end}}", rail,
        when);
  };
  const std::string faults = fmt::format(
      "[{}, {}]", down(0, "during: {iteration: 8, progress: 30%}"), down(1, "at: 600ms"));
  const std::string file = folder_.write("scenario.yaml", scenarioText("[hot_repair]", faults));
  // So many iterations that the work is not over when the second fault strikes.
  const Ran ran = runFaultline({"run", file, "--out", out(), "--set", "limits.give_up=4900ms",
                                "--set", "limits.deadline=5s", "--set", "workload.iterations=100"});
  EXPECT_EQ(ran.exit, 1) << ran.out << ran.err;
  const reports::Run hung = runOf(result(), "hot_repair");
  EXPECT_EQ(hung.status, RunStatus::kHung) << hung.message;
  EXPECT_LT(hung.iterations.back().start_ms + hung.iterations.back().ms, 620);
  EXPECT_GE(hung.failovers.size(), 1u) << "of rail 0";
  EXPECT_TRUE(hung.faults.front().hit->ok) << hung.faults.front().hit->detail;
  EXPECT_GE(hung.counters.at("failovers"), 4) << "both rails, at both ends";
}

TEST_F(RunTest, CtrlCEndsSoonWithAPartialResultThatSaysSo) {
  const std::string file = folder_.write(
      "scenario.yaml", scenarioText("[fault_free, hot_repair]", portDown("carrier", "10s")));
  Victim victim({kBinary, "run", file, "--out", out(), "--set", "workload.iterations=2000"},
                Victim::Listen::kStderr);
  ASSERT_TRUE(victim.awaitOutput("[1/2]", 20s));
  ::poll(nullptr, 0, 700);
  ::kill(-victim.pid(), SIGINT);  // as the terminal does: to the whole group
  const TimePoint asked = now();
  int status = 0;
  ASSERT_EQ(::waitpid(victim.pid(), &status, 0), victim.pid());
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_LT(now() - asked, 2s);
  EXPECT_TRUE(result().interrupted);
  EXPECT_TRUE(std::filesystem::exists(out() + "/report.html"));
}

TEST_F(RunTest, WithoutRootItRunsInAUserNamespaceOfItsOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root: every other test here shows it already";
  if (runFaultline({"--version"}).exit != 0) FAIL();
  ::chmod(folder_.path().c_str(), 0777);
  const std::string file = folder_.write(
      "scenario.yaml", scenarioText("[fault_free, hot_repair]", portDown("carrier", "200ms")));
  const Ran ran = testing::runProgram(
      "/usr/bin/setpriv",
      {"--reuid=65534", "--regid=65534", "--clear-groups", kBinary, "run", file, "--out", out()});
  if (ran.exit == 3 && ran.err.find("user namespace") != std::string::npos) GTEST_SKIP() << ran.err;
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
}

TEST_F(RunTest, AClusterKeptWithoutRootIsOpenedByTheCommandThatIsPrinted) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root: cannot become somebody else";
  ::chmod(folder_.path().c_str(), 0777);
  const std::string file = folder_.write("scenario.yaml", scenarioText("[fault_free]", "[]"));
  const std::string script = R"sh(cd "$2"
    "$0" run "$1" --out out --keep --set workload.iterations=2 2> err > out.txt &
    while kill -0 $! && ! grep -q '# node 2' err; do sleep 0.1; done
    sh -c "$(grep '# node 1' err | sed 's|ip addr|cat /proc/net/dev|')"
    looked=$?
    kill -TERM $!
    wait $!
    cat err >&2
    exit $looked)sh";
  const Ran ran = testing::runProgram(
      "/usr/bin/setpriv", {"--reuid=65534", "--regid=65534", "--clear-groups", "/bin/sh", "-c",
                           script, kBinary, file, folder_.path()});
  if (ran.err.find("user namespace (needed") != std::string::npos) GTEST_SKIP() << ran.err;
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_NE(ran.out.find("rail1"), std::string::npos) << ran.out;
}

TEST_F(RunTest, NothingIsLeftAfterSigkillAtTenRandomMoments) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const char* const given = std::getenv("FAULTLINE_SEED");
  const std::uint64_t seed = given != nullptr
                                 ? std::strtoull(given, nullptr, 10)
                                 : static_cast<std::uint64_t>(now().time_since_epoch().count());
  SCOPED_TRACE(fmt::format("seed: set FAULTLINE_SEED={} to repeat", seed));
  Random random(seed);
  // The port goes down at once and stays down: most moments fall into that time.
  const auto fileFor = [&](const std::string& how) {
    return folder_.write(
        how + ".yaml",
        scenarioText("[hot_repair]", fmt::format("[{{kind: port_down, how: {}, target: {{node: 1, "
                                                 "rail: 0}}, at: 1ms, duration: 20s}}]",
                                                 how)));
  };
  const std::string files[] = {fileFor("admin"), fileFor("carrier")};
  int mostWatched = 0;
  for (int moment = 0; moment < 10; ++moment) {
    const std::string& file = files[moment / 2 % 2];
    auto observer = NamespaceObserver::make();
    ASSERT_TRUE(observer.ok()) << observer.status().message();
    Victim victim({kBinary, "run", file, "--out", out(), "--set", "workload.iterations=2000"},
                  Victim::Listen::kStderr);
    ASSERT_TRUE(victim.awaitOutput("[1/1]", 20s));
    const auto delay = static_cast<int>(random.below(1500));
    ::poll(nullptr, 0, delay);
    const auto targets =
        moment % 2 == 0 ? Victim::Targets::kProgramAlone : Victim::Targets::kWholeGroup;
    ASSERT_TRUE(victim.killAndWatch(targets, *observer));
    mostWatched = std::max(mostWatched, observer->watched());
    EXPECT_TRUE(victim.allGone(*observer, 2s))
        << "moment " << moment << ", after " << delay << " ms: " << *observer->alive() << " of "
        << observer->watched() << " namespaces are left";
  }
  EXPECT_GE(mostWatched, 4) << "three nodes and the switch";
}

}  // namespace
}  // namespace faultline::run
