#include "resilient_ccl/schedule/rerank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/port_simulator.h"
#include "resilient_ccl/schedule/verifier.h"

namespace faultline::schedule {
namespace {

using ::testing::ElementsAre;

constexpr int kRails = 4;
constexpr std::uint64_t kAll = 0b1111;

double ringTime(const LiveRails& rails, const std::vector<int>& order) {
  const auto ring = reordered(
      std::move(*makeSchedule("ring", {.ranks = rails.ranks(), .elements = 1 << 16})), order);
  std::vector<double> ports;
  for (int rank = 0; rank < rails.ranks(); ++rank) ports.push_back(rails.port(rank));
  return costOf(*ring, ports, {.links = rails.links()})->timeOverRing;
}

std::vector<int> givenOrder(int ranks) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(RerankTest, BridgesKeepDifferentLossesApart) {
  // Neighbours 1 and 2 lost different rails: two of four in common. With a healthy rank between
  // them every link has three.
  const LiveRails rails{kRails, {kAll, kAll - 1, kAll - 2, kAll}};
  EXPECT_EQ(worstLink(rails, givenOrder(4)), 0.5);
  const std::vector<int> order = rerank(rails);
  EXPECT_EQ(worstLink(rails, order), 0.75);
  EXPECT_NEAR(ringTime(rails, givenOrder(4)), 2, 1e-9);
  EXPECT_NEAR(ringTime(rails, order), 4.0 / 3, 1e-9);
}

TEST(RerankTest, WithoutAGainTheOrderStays) {
  EXPECT_THAT(rerank({kRails, {kAll, kAll, kAll}}), ElementsAre(0, 1, 2));
  EXPECT_THAT(rerank({kRails, {kAll, kAll - 1, kAll - 1, kAll}}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(rerank({kRails, {kAll - 1, kAll - 2}}), ElementsAre(0, 1));
  EXPECT_THAT(rerank({kRails, {kAll}}), ElementsAre(0));
}

TEST(RerankTest, IsNeverWorseAndNearlyAlwaysTheBest) {
  int best = 0;
  constexpr int kCases = 300;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    Random random(seed);
    LiveRails rails{kRails, {}};
    for (std::uint64_t rank = 3 + random.below(5); rank > 0; --rank) {
      std::uint64_t live = kAll;
      for (std::uint64_t lost = random.below(3); lost > 0; --lost) {
        live &= ~(std::uint64_t{1} << random.below(kRails));
      }
      rails.live.push_back(live);
    }
    const std::vector<int> order = rerank(rails);
    std::vector<int> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(sorted, givenOrder(rails.ranks())) << "seed " << seed;
    ASSERT_EQ(order.front(), 0);
    ASSERT_GE(worstLink(rails, order), worstLink(rails, givenOrder(rails.ranks())))
        << "seed " << seed;
    double possible = 0;
    std::vector<int> tried = givenOrder(rails.ranks());
    do {
      possible = std::max(possible, worstLink(rails, tried));
    } while (std::next_permutation(tried.begin() + 1, tried.end()));
    if (worstLink(rails, order) == possible) ++best;
  }
  EXPECT_GE(best, kCases * 95 / 100);
}

TEST(RerankTest, AReorderedScheduleIsRight) {
  for (const char* algorithm : {"ring", "optcc", "tree", "r2_allreduce", "pairwise_all_to_all"}) {
    auto schedule = makeSchedule(algorithm, {.ranks = 5, .elements = 60, .segments = 2});
    const auto moved = reordered(std::move(*schedule), {3, 1, 4, 0, 2});
    EXPECT_EQ(moved->algorithm(), algorithm);
    const bool inBlocks = moved->collective() == Collective::kAllToAll;  // whose are by rank
    EXPECT_EQ(verifySchedule(*moved)->ok(), !inBlocks) << algorithm;
  }
}

TEST(RerankTest, LinksLimitWhatPortsWouldCarry) {
  const std::vector<double> ports{1, 1, 1};
  for (const PortModel model : {PortModel::kFluid, PortModel::kOnePort}) {
    const auto simulator = makePortSimulator(model, ports, {0.5});
    simulator->add({.id = 0, .from = 0, .to = 1, .size = 1, .stream = 0, .link = 0}, 0);
    EXPECT_NEAR(simulator->takeNext().at(0).time, 2, 1e-9);
  }
  // Two lanes share the link; what they leave of the port is another's.
  const auto simulator = makePortSimulator(PortModel::kFluid, ports, {0.5});
  simulator->add({.id = 0, .from = 0, .to = 1, .size = 1, .stream = 0, .link = 0}, 0);
  simulator->add({.id = 1, .from = 0, .to = 1, .size = 1, .stream = 1, .link = 0}, 0);
  simulator->add({.id = 2, .from = 0, .to = 2, .size = 1, .stream = 2}, 0);
  EXPECT_NEAR(simulator->takeNext().at(0).time, 2, 1e-9);
  EXPECT_NEAR(simulator->takeNext().at(0).time, 4, 1e-9);
}

TEST(RerankTest, LinksMustFitTheRanks) {
  const std::vector<double> healthy(4, 1.0);
  const auto ring = makeSchedule("ring", {.ranks = 4, .elements = 64});
  EXPECT_FALSE(costOf(**ring, healthy, {.links = {1, 1}}).ok());
}

}  // namespace
}  // namespace faultline::schedule
