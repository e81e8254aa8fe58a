#include "resilient_ccl/schedule/optcc_server.h"

#include <gtest/gtest.h>

#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"
#include "tests/support/csv_data.h"

namespace faultline::schedule {
namespace {

constexpr std::int64_t kServerElements = 1 << 22;

/// NVLink of an H100 over the eight 50 GB/s NICs of its server.
constexpr double kInsideBandwidth = 450.0 / 400;

Cost costAt(int nodes, int perNode, double r, int segments) {
  std::vector<double> bandwidths(static_cast<std::size_t>(nodes * perNode), 1.0);
  bandwidths[0] = r;
  const auto schedule = makeSchedule("optcc_server", {.ranks = nodes * perNode,
                                                      .elements = kServerElements,
                                                      .segments = segments,
                                                      .bandwidths = bandwidths,
                                                      .ranksPerNode = perNode});
  return *costOf(**schedule, bandwidths,
                 {.ranksPerNode = perNode, .insideBandwidth = kInsideBandwidth});
}

TEST(OptccServerTest, IsNearItsBound) {
  for (const auto& [nodes, perNode] : {std::pair(2, 2), {4, 2}, {3, 4}}) {
    for (const double r : {1.0, 0.75, 0.5, 0.25}) {
      const Cost cost = costAt(nodes, perNode, r, 32);
      EXPECT_GE(cost.timeOverBound, 1 - 1e-6) << nodes << "x" << perNode << " " << r;
      EXPECT_LE(cost.timeOverBound, 1.09) << nodes << "x" << perNode << " " << r;
    }
  }
  // More than 2 nodes x 2: 2(s-1)/(s-1+r) against the flat ring's 2(p-1)/p.
  EXPECT_NEAR(costAt(4, 2, 0.75, 1).boundTime, 6 / 3.75, 1e-9);
  EXPECT_NEAR(costAt(2, 2, 0.5, 1).boundTime, 2, 1e-9);
}

TEST(OptccServerTest, IsAsFastAsTheReferenceSimulator) {
  // 4 servers of 8 ranks, half the bandwidth of one lost, 64 segments: 1.062 of the flat ring.
  EXPECT_NEAR(costAt(4, 8, 0.5, 64).timeOverRing, 1.062, 0.01);
}

/// Elements that leave `node`; what comes in is the same, over the same rails.
std::int64_t sentBy(const Schedule& schedule, int node, int perNode) {
  std::int64_t out = 0, in = 0;
  for (int rank = node * perNode; rank < (node + 1) * perNode; ++rank) {
    for (int lane = 0; lane < schedule.lanes(); ++lane) {
      for (std::int64_t i = 0; i < schedule.opCount(rank, lane); ++i) {
        const Op op = schedule.op(rank, lane, i);
        if (op.peer / perNode == node) continue;
        EXPECT_EQ(op.peer % perNode, rank % perNode);  // on the same rail
        (op.kind == OpKind::kSend ? out : in) += op.piece.count;
      }
    }
  }
  EXPECT_EQ(out, in);
  return out;
}

TEST(OptccServerTest, ADegradedNodeSendsWhatTheReferenceCountsWhichIsItsBound) {
  const auto rows = test::csvRows<int, int, int, double>("server_loads.csv");
  ASSERT_EQ(rows.size(), 8u);
  for (const auto& [nodes, perNode, lost, expected] : rows) {
    const double r = 1.0 * (perNode - lost) / perNode;
    std::vector<double> bandwidths(static_cast<std::size_t>(nodes * perNode), 1.0);
    for (int rank = 0; rank < perNode; ++rank) bandwidths[static_cast<std::size_t>(rank)] = r;
    const auto schedule = makeSchedule("optcc_server", {.ranks = nodes * perNode,
                                                        .elements = kServerElements,
                                                        .segments = 2,
                                                        .bandwidths = bandwidths,
                                                        .ranksPerNode = perNode});
    const double sent = static_cast<double>(sentBy(**schedule, 0, perNode)) / kServerElements;
    EXPECT_NEAR(sent, expected, 1e-3) << nodes << "x" << perNode << ", " << lost << " lost";
    const auto cost = costOf(**schedule, bandwidths, {.ranksPerNode = perNode});
    EXPECT_NEAR(cost->boundTime, expected / r, 1e-9) << nodes << "x" << perNode << ", " << lost;
  }
}

TEST(OptccServerTest, ANodeSendsWhatItsShareSays) {
  constexpr int kNodes = 4, kPerNode = 3;
  const std::vector<double> ofNodes{1, 0.75, 1, 1};
  const Shares shares = ownerShares(kNodes, ofNodes, PortModel::kFluid);
  const auto schedule = optccServer(kNodes, kPerNode, kServerElements, 4, 0, shares);
  for (int node = 0; node < kNodes; ++node) {
    const double w = static_cast<double>(shares.weight(node)) / static_cast<double>(shares.total());
    const double sent = static_cast<double>(sentBy(*schedule, node, kPerNode)) / kServerElements;
    EXPECT_NEAR(sent, 1 + (kNodes - 2) * w, 1e-4);
  }
}

TEST(OptccServerTest, NodesMustBeFull) {
  EXPECT_FALSE(makeSchedule("optcc_server", {.ranks = 5, .elements = 100, .ranksPerNode = 2}).ok());
  const std::vector<double> healthy(5, 1.0);
  const auto ring = makeSchedule("ring", {.ranks = 5, .elements = 100});
  EXPECT_FALSE(costOf(**ring, healthy, {.ranksPerNode = 2}).ok());
}

TEST(OptccServerTest, AFlatRingCrossesEachNodeOnce) {
  std::vector<double> bandwidths(8, 1.0);
  bandwidths[5] = 0.5;
  const auto ring = makeSchedule("ring", {.ranks = 8, .elements = kServerElements});
  const auto cost = costOf(**ring, bandwidths, {.ranksPerNode = 4});
  EXPECT_NEAR(cost->timeOverRing, 2, 1e-4);
}

}  // namespace
}  // namespace faultline::schedule
