#include "harness/baseline/strategy_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::baseline {
namespace {

TEST(StrategyTableTest, EveryStrategyIsDocumentedAndCanCorrupt) {
  for (const StrategySpec& strategy : strategies()) {
    EXPECT_EQ(findStrategy(strategy.name), &strategy) << "the name is not unique";
    EXPECT_FALSE(strategy.summary.empty());
    EXPECT_FALSE(strategy.measures.empty());
    const auto options = Parameters::parse(strategy.name, strategy.options, {});
    ASSERT_TRUE(options.ok()) << options.status().message();
    EXPECT_FALSE(options->get<bool>(kCorruptOneElement));
    for (const ParameterSpec& spec : strategy.options) {
      EXPECT_THAT(describeStrategy(strategy), ::testing::HasSubstr(std::string(spec.name)));
    }
  }
  EXPECT_EQ(findStrategy("prayer"), nullptr);
}

TEST(StrategyTableTest, OnlyBaselinesAreSparedTheFault) {
  EXPECT_FALSE(findStrategy(kFaultFree)->meetsFaults);
  EXPECT_FALSE(findStrategy(kArmed)->meetsFaults);
  EXPECT_TRUE(findStrategy(kFailStop)->meetsFaults);
  EXPECT_TRUE(findStrategy(kHotRepair)->meetsFaults);
  EXPECT_TRUE(findStrategy(kBalance)->meetsFaults);
}

}  // namespace
}  // namespace faultline::baseline
