#include "harness/baseline/strategy_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::baseline {
namespace {

TEST(StrategyTableTest, EveryStrategyIsDocumentedAndCanCorrupt) {
  for (const StrategySpec& strategy : strategies()) {
    EXPECT_EQ(findStrategy(strategy.name), &strategy) << "the name is not unique";
    EXPECT_FALSE(strategy.summary.empty());
    EXPECT_FALSE(strategy.measures.empty());
    const auto options = Parameters::parse(strategy.name, strategy.options, {});
    ASSERT_TRUE(options.ok()) << options.status().message();
    // Nobody can reach into programs that are not ours.
    // What is computed has no elements.
    const bool ours =
        strategy.name != kUnprotected && strategy.workload != "command" && !strategy.modelled;
    EXPECT_EQ(options->has(kCorruptOneElement), ours);
    if (strategy.name == kUnprotected) continue;
    EXPECT_FALSE(ours && options->get<bool>(kCorruptOneElement));
    for (const ParameterSpec& spec : strategy.options) {
      EXPECT_THAT(describeStrategy(strategy), ::testing::HasSubstr(std::string(spec.name)));
    }
  }
  EXPECT_EQ(findStrategy("prayer"), nullptr);
  for (const StrategySpec& strategy : strategies()) {
    EXPECT_THAT(describeStrategy(strategy), ::testing::Not(::testing::HasSubstr("required")));
  }
}

TEST(StrategyTableTest, OnlyBaselinesAreSparedTheFault) {
  EXPECT_FALSE(findStrategy(kFaultFree)->meetsFaults);
  EXPECT_FALSE(findStrategy(kArmed)->meetsFaults);
  EXPECT_TRUE(findStrategy(kFailStop)->meetsFaults);
  EXPECT_TRUE(findStrategy(kHotRepair)->meetsFaults);
  EXPECT_TRUE(findStrategy(kBalance)->meetsFaults);
}

TEST(StrategyTableTest, PlannedOnesNameAnAlgorithmOrAny) {
  for (const StrategySpec& strategy : strategies()) {
    if (!strategy.planned() || strategy.plannedBy == kAnyAlgorithm) continue;
    const bool known = std::ranges::any_of(
        schedule::algorithms(),
        [&](const schedule::Algorithm& algorithm) { return algorithm.name == strategy.plannedBy; });
    EXPECT_TRUE(known) << strategy.plannedBy;
  }
  EXPECT_FALSE(findStrategy(kBalance)->planned());
  EXPECT_EQ(findStrategy(kOptcc)->plannedBy, "optcc");
  EXPECT_EQ(findStrategy(kOptccServer)->plannedBy, "optcc_server");
  EXPECT_EQ(findStrategy(kAuto)->plannedBy, kAnyAlgorithm);
}

}  // namespace
}  // namespace faultline::baseline
