#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/netns/run/run_fixture.h"

// A fault of one of several ranks of a node.
namespace faultline::run {
namespace {

TEST_F(RunTest, AFaultOfARankLeavesTheOthersOfItsNodeAlone) {
  std::string text = scenarioText(
      "[hot_repair]", "[{kind: process_stop, target: {rank: 3}, at: 200ms, duration: 300ms}]");
  constexpr std::string_view kOne = "ranks_per_node: 1";
  text.replace(text.find(kOne), kOne.size(), "ranks_per_node: 2");
  const testing::Ran ran = run(text);
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const reports::Run stopped = runOf(result(), "hot_repair");
  ASSERT_EQ(stopped.evidence.size(), 1u);
  EXPECT_TRUE(stopped.evidence[0].observed.starts_with("1 of 1 processes are stopped"))
      << stopped.evidence[0].observed;
  ASSERT_EQ(stopped.faults.size(), 1u);
  EXPECT_EQ(stopped.faults[0].target.node, 1);
  EXPECT_EQ(stopped.faults[0].target.text, "rank 3");
}

}  // namespace
}  // namespace faultline::run
