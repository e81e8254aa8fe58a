#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "resilient_ccl/channel/link.h"
#include "tests/support/sim_world.h"

namespace faultline::test {

/// Two ends of a link in a simulated world. Each invariant of the channel (docs/channel_tests.md)
/// has its test over rails with RDMA's late writes and over rails whose receiver places every byte,
/// with both policies.
class LinkFixture : public ::testing::TestWithParam<std::tuple<bool, channel::Policy>> {
 public:
  static auto allRails() {
    return ::testing::Combine(::testing::Bool(),
                              ::testing::Values(channel::Policy::kPinned, channel::Policy::kPull));
  }
  static std::string railsName(const ::testing::TestParamInfo<ParamType>& tested) {
    const auto [lateWrites, policy] = tested.param;
    return std::string(lateWrites ? "LateWrites" : "Placed") +
           (policy == channel::Policy::kPinned ? "Pinned" : "Pull");
  }

 protected:
  static SimOptions options(int rails = 2) {
    SimOptions options;
    options.link.rails = rails;
    options.lateWrites = std::get<0>(GetParam());
    options.link.policy = std::get<1>(GetParam());
    options.link.giveUp = 1s;
    return options;
  }
  static void expectClean(SimWorld& world) {
    world.run(200ms);  // late writes have landed by then
    world.checkMemory();
    for (const auto& problem : world.problems()) ADD_FAILURE() << problem;
    EXPECT_EQ(world.completed(), world.posted());
    // The exchange at the fence leaves nothing to be sent twice; only tails are, on purpose.
    for (int end = 0; end < 2; ++end) {
      EXPECT_LE(world.link(end).counters().bytesDuplicate,
                world.link(1 - end).counters().bytesCopied);
    }
  }
  static void bothWays(SimWorld& world, Bytes length, int count = 1) {
    for (int i = 0; i < count; ++i) {
      for (int from = 0; from < 2; ++from) world.message(from, length);
    }
  }
};

}  // namespace faultline::test
