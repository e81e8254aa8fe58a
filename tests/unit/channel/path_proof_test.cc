#include "resilient_ccl/channel/path_proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sim_world.h"

// Paths over which no datagram has ever passed are named, and control does not wait for them.

namespace faultline::test {
namespace {

using channel::DeadDirection;
using channel::PathProved;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

SimOptions options(std::set<std::pair<int, int>> silent, bool resilient = true) {
  SimOptions options;
  options.link.rails = 2;
  options.link.policy = channel::Policy::kPull;
  options.link.resilient = resilient;
  options.silentPaths = std::move(silent);
  return options;
}

constexpr int kManagement = 2;

std::vector<int> named(const SimWorld& world, int end) {
  std::vector<int> paths;
  for (const PathProved& proved : world.proved(end)) {
    if (!proved.passes) paths.push_back(proved.path);
  }
  return paths;
}

TEST(PathProofTest, APathThatCarriesDatagramsIsNotNamed) {
  SimWorld world(options({}));
  for (int from = 0; from < 2; ++from) world.message(from, 4 << 20);
  EXPECT_TRUE(world.runUntilIdle(5s));
  world.run(3s);
  for (int end = 0; end < 2; ++end) EXPECT_THAT(world.proved(end), IsEmpty());
}

TEST(PathProofTest, ARailThatCarriesNoneIsNamedAtBothEndsWithinASecondThoughNothingIsSent) {
  SimWorld world(options({{0, 1}, {1, 1}}));
  world.run(1s);
  for (int end = 0; end < 2; ++end) {
    ASSERT_THAT(named(world, end), ElementsAre(1)) << end;
    const PathProved& proved = world.proved(end).front();
    EXPECT_TRUE(proved.othersAnswer);
    EXPECT_GE(proved.rounds, 4);
    EXPECT_LT(proved.within, 1s);
    EXPECT_EQ(proved.direction, DeadDirection::kBoth);
    EXPECT_TRUE(world.link(end).railUp(1));
  }
}

TEST(PathProofTest, OneDirectionIsNamedAsTheDeadOneAtEachEnd) {
  SimWorld world(options({{0, 1}}));
  world.run(1s);
  ASSERT_THAT(named(world, 0), ElementsAre(1));
  ASSERT_THAT(named(world, 1), ElementsAre(1));
  EXPECT_EQ(world.proved(0).front().direction, DeadDirection::kOutgoing);
  EXPECT_EQ(world.proved(1).front().direction, DeadDirection::kIncoming);
}

TEST(PathProofTest, ASilentManagementNetworkIsNamedAsWell) {
  SimWorld world(options({{0, kManagement}, {1, kManagement}}));
  world.run(1s);
  for (int end = 0; end < 2; ++end) EXPECT_THAT(named(world, end), ElementsAre(kManagement));
}

TEST(PathProofTest, WhereNoPathCarriesAnyAllAreNamedWithinASecond) {
  SimWorld world(options({{0, 0}, {0, 1}, {0, kManagement}}));
  world.run(1s);
  for (int end = 0; end < 2; ++end) {
    EXPECT_THAT(named(world, end), ElementsAre(0, 1, kManagement));
    EXPECT_FALSE(world.proved(end).front().othersAnswer);
  }
}

TEST(PathProofTest, ItIsSaidOnceAndAgainWhenThePathCarriesSome) {
  SimWorld world(options({{0, 0}, {1, 0}}));
  world.run(2s);
  ASSERT_THAT(named(world, 0), ElementsAre(0));
  world.healPaths();
  world.message(0, 1000, {.receiveDelay = 2s});  // somebody waits, and the peer is asked for signs
  world.run(2s);
  ASSERT_EQ(world.proved(0).size(), 2u);
  EXPECT_EQ(world.proved(0).back().path, 0);
  EXPECT_TRUE(world.proved(0).back().passes);
}

TEST(PathProofTest, ControlDoesNotTakeARailThatIsNamed) {
  SimWorld world(options({{0, 0}, {1, 0}}));
  world.run(1s);
  ASSERT_THAT(named(world, 0), ElementsAre(0));
  const auto sent = [&](int path) {
    return world.datagramsSent(0, path) + world.datagramsSent(1, path);
  };
  const auto silentBefore = sent(0), goodBefore = sent(1);
  for (int i = 0; i < 50; ++i) {
    for (int from = 0; from < 2; ++from) world.message(from, 1 << 20);
    EXPECT_TRUE(world.runUntilIdle(5s));
  }
  EXPECT_LT(sent(0) - silentBefore, (sent(1) - goodBefore) / 4);
  world.checkMemory();
}

TEST(PathProofTest, WithoutResilienceNothingIsProbedOrNamed) {
  SimWorld world(options({{0, 1}, {1, 1}}, /*resilient=*/false));
  world.run(2s);
  EXPECT_THAT(world.proved(0), IsEmpty());
  EXPECT_EQ(world.datagramsSent(0, 1), 0);
}

}  // namespace
}  // namespace faultline::test
