#include "harness/analysis/noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analysis/expectations.h"
#include "harness/analysis/summary.h"
#include "harness/record/run_order.h"
#include "tests/support/sample_scenario.h"

namespace faultline::run {
namespace {

using ::testing::HasSubstr;

scenario::Scenario pairsScenario(const std::string& again = "{fault_free: {as: again}}") {
  const std::string yaml =
      "version: 1\nname: noise\nworkload: {kind: training}\n"
      "strategies: [fault_free, " +
      again + ", armed]\nrepeat: 12\n";
  scenario::ReadResult read = scenario::readScenario(yaml, "sample");
  if (!read.ok()) throw std::runtime_error(read.mistakes.front().toString());
  return *std::move(read.scenario);
}

/// Blocks of fault_free at 100, `again` between 99.5 and 100.5, and armed slower by `overhead` %.
std::vector<reports::Run> pairsOf(int count, double overhead = 0) {
  std::vector<reports::Run> runs;
  for (int block = 0; block < count; ++block) {
    runs.push_back(sampleRun("fault_free", block, 100));
    runs.push_back(sampleRun("again", block, 100 + 0.5 * (block % 3 - 1)));
    runs.push_back(sampleRun("armed", block, 100 / (1 + overhead / 100)));
  }
  return runs;
}

const reports::Overhead& armed(const std::vector<reports::Summary>& rows) {
  return *rows[2].overhead_pct;
}

TEST(NoiseTest, IsWhatTheSecondRowOfFaultFreeDiffersBy) {
  const auto noise = noiseOf(pairsScenario(), pairsOf(12), 7);
  ASSERT_TRUE(noise);
  EXPECT_EQ(noise->strategy, "again");
  EXPECT_EQ(noise->pairs, 12);
  EXPECT_NEAR(noise->band_pct, 0.5, 0.01);
  EXPECT_LE(noise->median_band_pct, noise->band_pct);
  EXPECT_GT(noise->median_band_pct, 0);
  EXPECT_NEAR(*noise->drift_pct, 0, 0.5);
  EXPECT_EQ(noise->void_because, "");
}

TEST(NoiseTest, NeedsASecondRowWithTheSameOptionsAndTenPairs) {
  EXPECT_FALSE(noiseOf(pairsScenario(), pairsOf(9), 7));
  EXPECT_FALSE(noiseOf(pairsScenario("hot_repair"), pairsOf(12), 7));
  EXPECT_FALSE(noiseOf(pairsScenario("{fault_free: {as: again, telemetry: on}}"), pairsOf(12), 7));
  EXPECT_EQ(whyNoiseUnknown(pairsScenario(), pairsOf(9)),
            "noise not checked: 9 pairs of equal runs (fault_free, again), and 10 are needed for "
            "what they differ by ('repeat')");
  EXPECT_EQ(whyNoiseUnknown(pairsScenario(), pairsOf(12)), "");
  EXPECT_EQ(whyNoiseUnknown(pairsScenario("hot_repair"), pairsOf(9)), "") << "nobody asked for it";
}

TEST(NoiseTest, ANoisyOrChangingMachineIsVoid) {
  auto runs = pairsOf(12);
  for (reports::Run& run : runs) {
    if (run.strategy == "again" && run.block % 4 == 0) run.throughput->value = 97;
  }
  EXPECT_THAT(noiseOf(pairsScenario(), runs, 7)->void_because, HasSubstr("too noisy"));
  runs = pairsOf(12);
  for (reports::Run& run : runs) run.throughput->value *= 1 - 0.01 * run.block;
  const auto noise = noiseOf(pairsScenario(), runs, 7);
  EXPECT_GT(*noise->drift_pct, 5);
  EXPECT_THAT(noise->void_because, HasSubstr("more time at the end"));
  EXPECT_FALSE(armed(summarise(pairsScenario(), runs, 7)).median > 0.1) << "blocks cancel it";
}

TEST(NoiseTest, OverheadsAreHeldAgainstIt) {
  const auto little = summarise(pairsScenario(), pairsOf(12, 0.1), 7);
  EXPECT_EQ(armed(little).distinguishable, false);
  const auto noise = noiseOf(pairsScenario(), pairsOf(12), 7);
  EXPECT_EQ(*armed(little).at_most, noise->median_band_pct) << "nothing smaller can be seen";
  const auto much = summarise(pairsScenario(), pairsOf(12, 0.9), 7);
  EXPECT_EQ(armed(much).distinguishable, true);
  EXPECT_NEAR(*armed(much).at_most, 0.9, 1e-9);
  const auto without = summarise(pairsScenario("hot_repair"), pairsOf(12, 0.9), 7);
  EXPECT_FALSE(without[2].overhead_pct->at_most);
  EXPECT_FALSE(without[2].overhead_pct->distinguishable);
}

TEST(NoiseTest, FasterThanPossibleWithinTheNoiseIsNotMisMeasured) {
  auto runs = pairsOf(12, -1.2);
  EXPECT_TRUE(summarise(pairsScenario(), runs, 7)[2].mis_measured);
  for (reports::Run& run : runs) {
    if (run.strategy == "again") run.throughput->value = 100 - 1.5;
  }
  EXPECT_FALSE(summarise(pairsScenario(), runs, 7)[2].mis_measured);
}

TEST(NoiseTest, ItsRowIsPlain) {
  const auto scenario = pairsScenario();
  EXPECT_EQ(armOf(*scenario.secondFaultFree()), reports::Arm::kPlain);
}

}  // namespace
}  // namespace faultline::run
