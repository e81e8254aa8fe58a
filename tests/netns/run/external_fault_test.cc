#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "tests/netns/run/run_fixture.h"
#include "tests/support/poll_until.h"
#include "tests/support/victim.h"

// A fault that is made by commands of the user, in whole runs.

namespace faultline::run {
namespace {

using test::Victim;

class ExternalFaultTest : public RunTest {
 protected:
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }

  std::string faultWith(const std::string& evidence) const {
    return fmt::format(
        "[{{kind: external, target: {{node: 1, rail: 0}}, during: {{iteration: 8, progress: 50%}}, "
        "duration: 100ms, apply: 'touch \"{}\"', revert: 'rm \"{}\"', evidence: '{}'}}]",
        file("broken"), file("broken"), evidence);
  }
};

TEST_F(ExternalFaultTest, IsAppliedProvedAndTakenBack) {
  const auto ran =
      run(scenarioText("[hot_repair]", faultWith(fmt::format("ls \"{}\"", file("broken")))));
  ASSERT_EQ(ran.exit, 0) << ran.out;
  const reports::ScenarioResult read = result();
  ASSERT_EQ(read.runs.size(), 1U);
  ASSERT_EQ(read.runs[0].evidence.size(), 1U);
  EXPECT_TRUE(read.runs[0].evidence[0].ok);
  EXPECT_EQ(read.runs[0].evidence[0].observed, file("broken"));
  EXPECT_FALSE(std::filesystem::exists(file("broken")));
}

TEST_F(ExternalFaultTest, ARunWhoseEvidenceFailsIsInvalid) {
  const auto ran = run(scenarioText("[hot_repair]", faultWith("false")));
  EXPECT_NE(ran.exit, 0);
  EXPECT_NE(ran.out.find("INVALID"), std::string::npos) << ran.out;
  EXPECT_FALSE(std::filesystem::exists(file("broken")));
}

TEST_F(ExternalFaultTest, IsTakenBackWhenTheBenchIsKilled) {
  const std::string scenario = folder_.write(
      "scenario.yaml",
      scenarioText(
          "[hot_repair]",
          faultWith(fmt::format("sh -c \"test -e {} && echo it && sleep 3\"", file("broken")))));
  Victim victim({FAULTLINE_BINARY_DIR "/faultline", "run", scenario, "--out", out(), "--force"},
                Victim::Listen::kStderr);
  ASSERT_TRUE(test::pollUntil(60s, [&] { return std::filesystem::exists(file("broken")); }));
  ::kill(-victim.pid(), SIGKILL);
  EXPECT_TRUE(test::pollUntil(30s, [&] { return !std::filesystem::exists(file("broken")); }));
}

// Ctrl-C while one of the user's commands takes long.
class ExternalInterruptTest : public ExternalFaultTest {
 protected:
  /// A fault whose commands may take very long; `apply` and `evidence` do more than usual.
  std::string faultThatTakesLong(const std::string& apply, const std::string& evidence) const {
    return fmt::format(
        "[{{kind: external, target: {{node: 1, rail: 0}}, during: {{iteration: 8, progress: 50%}}, "
        "duration: 50ms, limit: 60s, apply: 'sh -c \"touch {0}; {1}\"', revert: 'rm \"{0}\"', "
        "evidence: 'sh -c \"test -e {0} && {2}\"'}}]",
        file("broken"), apply, evidence);
  }
  /// Interrupts the run once `begun` is there; how long it took from there to the end.
  Duration interrupted(const std::string& faults, const std::string& begun) {
    const std::string scenario =
        folder_.write("scenario.yaml", scenarioText("[hot_repair]", faults));
    Victim victim({FAULTLINE_BINARY_DIR "/faultline", "run", scenario, "--out", out(), "--force"},
                  Victim::Listen::kStderr);
    EXPECT_TRUE(test::pollUntil(60s, [&] { return std::filesystem::exists(begun); }));
    ::kill(-victim.pid(), SIGINT);  // as the terminal does: to the whole group
    const TimePoint begin = now();
    int status = 0;
    EXPECT_EQ(::waitpid(victim.pid(), &status, 0), victim.pid());
    EXPECT_EQ(WEXITSTATUS(status), 130);
    return now() - begin;
  }
  // With the report.
  static constexpr Duration kSoon = 2s;
};

TEST_F(ExternalInterruptTest, EndsAnApplyAndTakesBackWhatItHasDone) {
  EXPECT_LT(interrupted(faultThatTakesLong("sleep 60", "echo it"), file("broken")), kSoon);
  EXPECT_FALSE(std::filesystem::exists(file("broken")));
  EXPECT_TRUE(result().interrupted);
}

TEST_F(ExternalInterruptTest, EndsALookForEvidenceAndTakesTheFaultBack) {
  const std::string looks = file("looks");
  EXPECT_LT(interrupted(faultThatTakesLong("true", "touch " + looks + " && sleep 60"), looks),
            kSoon);
  EXPECT_FALSE(std::filesystem::exists(file("broken")));
  EXPECT_TRUE(result().interrupted);
}

TEST_F(ExternalInterruptTest, WhileTheLastFaultIsTakenBackIsNotOverheard) {
  const std::string faults = fmt::format(
      "[{{kind: external, target: {{node: 1, rail: 0}}, during: {{iteration: 8, progress: 50%}}, "
      "until: end, apply: 'touch \"{0}\"', evidence: 'ls \"{0}\"', "
      "revert: 'sh -c \"touch {1}; sleep 1; rm {0}\"'}}]",
      file("broken"), file("reverts"));
  interrupted(faults, file("reverts"));
  EXPECT_FALSE(std::filesystem::exists(file("broken")));
  EXPECT_TRUE(result().interrupted);
}

}  // namespace
}  // namespace faultline::run
