#include "harness/analysis/exposed_overhead.h"

#include <gtest/gtest.h>

#include "harness/record/exposed_times.h"
#include "tests/support/sample_scenario.h"

namespace faultline::run {
namespace {

/// Its iterations took 60 ms, of which `exposed` were waited; those before the fault 6 ms.
reports::Run exposedRun(reports::Run run, double exposed) {
  for (reports::Iteration& iteration : run.iterations) {
    const bool before = !run.faults.empty() && iteration.start_ms < run.faults[0].start_ms;
    iteration.exposed_ms = before ? 6 : exposed;
  }
  return run;
}

TEST(ExposedOverheadTest, IsWhatTheFaultAddsInPercentOfAFaultFreeIteration) {
  const auto free = exposedRun(sampleRun("fault_free", 0), 6);
  auto run = exposedRun(faultedRun("hot_repair", 0), 9);
  EXPECT_NEAR(*exposedOverheadPercent(free, run), 100 * 3.0 / 60, 1e-9);
  run.iterations[5].exposed_ms = 500;
  EXPECT_NEAR(*exposedOverheadPercent(free, run), 5, 1e-9) << "a failover is no steady cost";
}

TEST(ExposedOverheadTest, IsUnknownWhereWorkWasLostOrNothingIsKnown) {
  const auto free = exposedRun(sampleRun("fault_free", 0), 6);
  const auto run = exposedRun(faultedRun("hot_repair", 0), 9);
  auto restarted = run;
  restarted.restarts.emplace_back();
  EXPECT_FALSE(exposedOverheadPercent(free, restarted));
  auto shrunk = run;
  shrunk.shrinks.emplace_back();
  EXPECT_FALSE(exposedOverheadPercent(free, shrunk));
  auto late = run;
  late.faults[0].start_ms = 1e6;
  EXPECT_FALSE(exposedOverheadPercent(free, late)) << "no iteration began after the fault";
  EXPECT_FALSE(exposedOverheadPercent(sampleRun("fault_free", 0), run));
  EXPECT_FALSE(exposedOverheadPercent(free, faultedRun("hot_repair", 0)));
}

TEST(ExposedOverheadTest, IsTheMedianOfTheBlocksWithItsInterval) {
  std::vector<reports::Run> runs;
  for (int block = 0; block < 6; ++block) {
    runs.push_back(exposedRun(sampleRun("fault_free", block), 6 + block));
    runs.push_back(exposedRun(faultedRun("hot_repair", block), 9 + block + (block == 0 ? 0.6 : 0)));
  }
  const auto overhead = exposedOverhead(sampleScenario(), runs, "hot_repair", 7);
  ASSERT_TRUE(overhead && overhead->ci95);
  EXPECT_NEAR(overhead->median, 5, 1e-9);
  EXPECT_NEAR(overhead->ci95->lo, 5, 1e-9);
  EXPECT_GT(overhead->ci95->hi, 5);
  EXPECT_EQ(overhead->n, 6);
  EXPECT_FALSE(overhead->distinguishable) << "nobody knows what equal runs differ by";
  EXPECT_FALSE(exposedOverhead(sampleScenario(), runs, "balance", 7));
}

TEST(ExposedOverheadTest, IsHeldAgainstWhatEqualRunsDifferBy) {
  scenario::Scenario scenario = sampleScenario("repeat: 10\n");
  scenario::Strategy again = scenario.strategies.front();
  again.name = "again";
  again.does = "fault_free";
  scenario.strategies.push_back(again);
  ASSERT_NE(scenario.secondFaultFree(), nullptr);
  std::vector<reports::Run> runs;
  for (int block = 0; block < 10; ++block) {
    runs.push_back(exposedRun(sampleRun("fault_free", block), 6));
    runs.push_back(exposedRun(sampleRun("again", block), block % 2 == 0 ? 5.4 : 6.6));  // 1 %
    runs.push_back(exposedRun(faultedRun("hot_repair", block), 6.3));                   // 0.5 %
    runs.push_back(exposedRun(faultedRun("balance", block), 9));                        // 5 %
  }
  EXPECT_EQ(exposedOverhead(scenario, runs, "hot_repair", 7)->distinguishable, false);
  EXPECT_NEAR(*exposedOverhead(scenario, runs, "hot_repair", 7)->at_most, 1, 1e-9);
  EXPECT_EQ(exposedOverhead(scenario, runs, "balance", 7)->distinguishable, true);
}

TEST(ExposedOverheadTest, AnIterationsExposureIsTheMeanOfItsRanks) {
  ExposedTimes times;
  times.ended({.iteration = 3, .took = 60ms, .exposed = {{"gradients", 20ms}}});
  times.ended({.iteration = 3, .took = 60ms, .exposed = {{"gradients", 5ms}, {"parameters", 5ms}}});
  EXPECT_EQ(times.ofIteration(3), 15);
  EXPECT_FALSE(times.ofIteration(4));
  ExposedTimes unknown;
  unknown.ended({.iteration = 3, .took = 60ms});
  EXPECT_FALSE(unknown.ofIteration(3)) << "not a job of a model";
}

}  // namespace
}  // namespace faultline::run
