#include "harness/cli/run_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cli/terminal.h"
#include "harness/control/time_left.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TerminalTest, OneRuleDecidesAboutColoursAndLinesThatAreWrittenOver) {
  const auto both = [](const Surroundings& surroundings) {
    const Terminal terminal = terminalOf(surroundings);
    return std::pair(terminal.colour, terminal.live);
  };
  const std::pair yes(true, true);
  const std::pair no(false, false);
  EXPECT_EQ(both({.terminal = true, .term = "xterm"}), yes);
  EXPECT_EQ(both({.terminal = false, .term = "xterm"}), no);
  EXPECT_EQ(both({.terminal = true, .term = "dumb"}), no);
  EXPECT_EQ(both({.terminal = true, .term = nullptr}), no);
  EXPECT_EQ(both({.terminal = true, .term = ""}), no);
  EXPECT_EQ(both({.terminal = true, .term = "xterm", .noColor = "1"}), std::pair(false, true));
  EXPECT_EQ(both({.terminal = true, .term = "xterm", .noColor = "0"}), std::pair(false, true))
      << "any value but an empty one";
  EXPECT_EQ(both({.terminal = true, .term = "xterm", .noColor = ""}), yes);
  EXPECT_EQ(terminalOf(Surroundings{.columns = 0}).columns, 80u);
  EXPECT_EQ(terminalOf(Surroundings{.columns = 132}).columns, 132u);
}

run::Moment momentOf(std::string_view phase, int iteration, std::optional<Duration> left) {
  return {.run = 2,
          .runs = 9,
          .block = 0,
          .strategy = "hot_repair",
          .phase = phase,
          .iteration = iteration,
          .left = left};
}

TEST(MomentTextTest, SaysWhereTheExperimentIsAndWhenItIsOver) {
  EXPECT_EQ(momentText(momentOf("running", 33, 34s), 60, 21s),
            "about 34 s left, 21 s so far; [3/9] block 1, hot_repair: iteration 34 of 60");
  EXPECT_EQ(momentText(momentOf("setting up", -1, std::nullopt), 60, 500ms),
            "500 ms so far; [3/9] block 1, hot_repair: setting up");
  EXPECT_THAT(momentText(momentOf("restarting", 33, 34s), 60, 1s), HasSubstr(": restarting"));
  EXPECT_THAT(momentText(momentOf("running", 7, 34s), 0, 1s), HasSubstr(": iteration 8"))
      << "a program that is not ours has as many as it likes";
}

class TimeLeftTest : public ::testing::Test {
 protected:
  explicit TimeLeftTest(const std::string& workload =
                            "{kind: training, iterations: 100, warmup_iterations: 0, compute: "
                            "10ms, gradient: {size: 2500kB, buckets: 1}}") {
    // 2 ranks: each sends all of its gradient once, in 100 ms at 200 Mbit/s.
    const auto read = scenario::readScenario(
        "version: 1\nname: n\ncluster: {nodes: 2, rails: 2, rail_rate: 100Mbit}\nworkload: " +
            workload + "\nstrategies: [fault_free, hot_repair]\nrepeat: 2\nlimits: {deadline: 60s}",
        "test");
    EXPECT_TRUE(read.ok()) << read.mistakes.front().toString();
    scenario = *read.scenario;
    plan = run::orderRuns(scenario, 1);
  }

  std::size_t numberOf(std::string_view strategy, int nth) const {
    for (std::size_t i = 0; i < plan.size(); ++i) {
      if (plan[i].strategy->name == strategy && nth-- == 0) return i;
    }
    return plan.size();
  }

  scenario::Scenario scenario;
  std::vector<run::PlannedRun> plan;
};

TEST_F(TimeLeftTest, BeforeItBeginsIterationsTimesComputeAndCommunication) {
  const auto one = run::estimatedRun(scenario, plan.front());
  ASSERT_TRUE(one);
  // 100 x (100 ms + 10 ms), and what comes before and after.
  EXPECT_GE(*one, 11s);
  EXPECT_LE(*one, 14s);
  scenario.workload.iterations = 200;
  EXPECT_GE(*run::estimatedRun(scenario, plan.front()) - *one, 10s);
  scenario.workload.iterations = 1'000'000;
  EXPECT_LE(*run::estimatedRun(scenario, plan.front()), 65s) << "it is ended at its deadline";
  const run::TimeEstimate all = run::estimateOf(scenario, plan);
  EXPECT_LE(*all.likely, all.atMost);
}

TEST_F(TimeLeftTest, FinishedRunsCorrectTheEstimate) {
  run::TimeLeft time(scenario, plan);
  const std::size_t free = numberOf("fault_free", 0);
  const Duration guess = *time.expected(free);
  time.finished(free, 3 * guess);
  EXPECT_EQ(*time.expected(numberOf("fault_free", 1)), 3 * guess) << "its own kind";
  const Duration other = *time.expected(numberOf("hot_repair", 0));
  EXPECT_NEAR(toSeconds(other), 3 * toSeconds(guess), 0.01) << "the others are as much slower";
  EXPECT_EQ(*time.expected(0, plan.size()), *time.expected(0, 2) + *time.expected(2, 4));
}

class TimeLeftOfProgramsTest : public TimeLeftTest {
 protected:
  TimeLeftOfProgramsTest() : TimeLeftTest("{kind: training, iterations: 1}") {
    scenario.workload.kind = scenario::findWorkloadKind("command");
  }
};

TEST_F(TimeLeftOfProgramsTest, NobodyKnowsBeforeOneHasRun) {
  run::TimeLeft time(scenario, plan);
  EXPECT_FALSE(time.expected(0, plan.size()));
  time.finished(0, 7s);
  EXPECT_EQ(time.expected(1), 7s);
  EXPECT_FALSE(run::estimateOf(scenario, plan).likely);
  EXPECT_GE(run::estimateOf(scenario, plan).atMost, 4 * 60s);
}

}  // namespace
}  // namespace faultline::cli
