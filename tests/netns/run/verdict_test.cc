#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include "run_fixture.h"

// Gates on jobs that hung, were killed or failed: the real program judges real runs.

namespace faultline::run {
namespace {

using ::testing::HasSubstr;
using testing::Ran;

class VerdictRunTest : public RunTest {
 protected:
  /// "holds", "fails" or "void", by expectation.
  std::map<std::string, std::string> outcomes() const {
    std::map<std::string, std::string> all;
    for (const reports::Expectation& line : result().expectations) {
      all[line.text] = line.is_void ? "void" : line.pass ? "holds" : "fails";
    }
    return all;
  }
};

TEST_F(VerdictRunTest, AJobThatHungAndWasKilledPassesNoGateOnLatency) {
  const Ran ran = run(
      scenarioText("[fault_free, {fail_stop: {watchdog: 500ms, checkpoint_every: 5}}, hot_repair]",
                   portDown("carrier", "1s"),
                   "[fail_stop.iteration_ms.max <= 450, fail_stop.receive_stall_ms.max <= 450, "
                   "fail_stop.iteration_ms.max < hot_repair.iteration_ms.max, "
                   "hot_repair.iteration_ms.max < fail_stop.iteration_ms.max, "
                   "fail_stop.iterations.count == 20]"));
  EXPECT_EQ(ran.exit, 1) << ran.out << ran.err;
  const auto judged = outcomes();
  EXPECT_EQ(judged.at("fail_stop.iteration_ms.max <= 450"), "fails");
  EXPECT_EQ(judged.at("fail_stop.receive_stall_ms.max <= 450"), "fails");
  EXPECT_EQ(judged.at("fail_stop.iteration_ms.max < hot_repair.iteration_ms.max"), "fails");
  EXPECT_EQ(judged.at("hot_repair.iteration_ms.max < fail_stop.iteration_ms.max"), "holds");
  EXPECT_EQ(judged.at("fail_stop.iterations.count == 20"), "holds");

  const reports::Run stopped = runOf(result(), "fail_stop");
  ASSERT_EQ(stopped.restarts.size(), 1u);
  const reports::Restart& restart = stopped.restarts[0];
  const auto struck = std::ranges::max_element(stopped.iterations, {}, &reports::Iteration::ms);
  EXPECT_EQ(struck->index, 8);
  EXPECT_EQ(struck->attempts, 2);
  EXPECT_GE(struck->ms, restart.hang_ms + restart.isolate_ms + restart.load_ms);
  EXPECT_LE(struck->start_ms, restart.fault_ms);
  EXPECT_GE(stopped.counters.at("longest_receive_stall_us"), 1000 * restart.hang_ms - 1);
}

TEST_F(VerdictRunTest, AJobThatNeverWentOnIsJudgedByWhatIsKnown) {
  // In the middle of an iteration, so that one is open when the job gives up.
  const std::string when = "during: {iteration: 8, progress: 50%}, until: end}";
  const std::string dead = "[{kind: port_down, target: {node: 1, rail: 0}, " + when +
                           ", {kind: port_down, target: {node: 1, rail: 1}, " + when + "]";
  const auto text = [&](const std::string& expect) {
    std::string yaml = scenarioText("[hot_repair]", dead, expect);
    const std::string budget = "give_up: 5s";
    yaml.replace(yaml.find(budget), budget.size(), "give_up: 1s");
    const std::string few = "iterations: 20";
    return yaml.replace(yaml.find(few), few.size(), "iterations: 900");
  };
  Ran ran =
      run(text("[hot_repair.status == failed, hot_repair.errors.message contains rail, "
               "hot_repair.iteration_ms.max >= 500, hot_repair.throughput.median > 0]"));
  EXPECT_EQ(ran.exit, 5) << ran.out << ran.err;
  EXPECT_EQ(result().verdict, reports::Verdict::kInvalid);
  auto judged = outcomes();
  EXPECT_EQ(judged.at("hot_repair.status == failed"), "holds");
  EXPECT_EQ(judged.at("hot_repair.errors.message contains rail"), "holds");
  EXPECT_EQ(judged.at("hot_repair.iteration_ms.max >= 500"), "holds");
  EXPECT_EQ(judged.at("hot_repair.throughput.median > 0"), "void");
  EXPECT_THAT(ran.out, HasSubstr("VOID   hot_repair.throughput.median > 0"));
  std::ifstream junit(out() + "/junit.xml");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(junit), {}), HasSubstr("type=\"void\""));
  const reports::Run failed = runOf(result(), "hot_repair");
  ASSERT_TRUE(failed.unfinished);
  EXPECT_GE(failed.duration_ms, failed.unfinished->start_ms + failed.unfinished->ms - 1);
}

}  // namespace
}  // namespace faultline::run
