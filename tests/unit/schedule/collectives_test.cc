#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/verifier.h"
#include "tests/support/recorded_schedule.h"

namespace faultline::schedule {
namespace {

using ::testing::HasSubstr;

constexpr int kFour = 4;
constexpr double kExact = 1e-6;

/// A schedule that claims to be of another collective.
class Relabelled final : public Schedule {
 public:
  Relabelled(const Schedule& original, Collective collective)
      : original_(original), collective_(collective) {}
  std::string_view algorithm() const override { return "relabelled"; }
  Collective collective() const override { return collective_; }
  int ranks() const override { return original_.ranks(); }
  int lanes() const override { return original_.lanes(); }
  std::int64_t elements() const override { return original_.elements(); }
  std::int64_t opCount(int rank, int lane) const override { return original_.opCount(rank, lane); }
  Op op(int rank, int lane, std::int64_t i) const override { return original_.op(rank, lane, i); }

 private:
  const Schedule& original_;
  Collective collective_;
};

std::string faultsOf(const Schedule& schedule) {
  std::string text;
  const auto report = verifySchedule(schedule);
  for (const Problem& problem : report->problems) text += problem.text + '\n';
  return text;
}

std::unique_ptr<Schedule> makeOfFour(const std::string& algorithm,
                                     const PortBandwidths& bandwidths = {}, int segments = 1) {
  return std::move(*makeSchedule(
      algorithm,
      {.ranks = kFour, .elements = 1 << 16, .segments = segments, .bandwidths = bandwidths}));
}

TEST(CollectivesTest, EveryAlgorithmIsRightForItsCollectiveAndWrongForStrongerOnes) {
  for (const Algorithm& algorithm : allAlgorithms()) {
    const auto schedule = makeOfFour(std::string(algorithm.name));
    EXPECT_EQ(schedule->algorithm(), algorithm.name);
    EXPECT_EQ(schedule->collective(), algorithm.collective);
    EXPECT_EQ(faultsOf(*schedule), "") << algorithm.name;
    if (algorithm.collective == Collective::kAllReduce) continue;
    EXPECT_NE(faultsOf(Relabelled(*schedule, Collective::kAllReduce)), "") << algorithm.name;
  }
  EXPECT_EQ(faultsOf(Relabelled(*makeOfFour("ring"), Collective::kReduceScatter)), "");
  EXPECT_EQ(faultsOf(Relabelled(*makeOfFour("ring"), Collective::kReduce)), "");
}

TEST(CollectivesTest, AnyRankCanBeTheRoot) {
  for (const char* const algorithm : {"chain_broadcast", "chain_reduce"}) {
    for (const PortBandwidths& bandwidths : {PortBandwidths{}, {0.5, 1, 1, 0.25}}) {
      for (int root = 0; root < kFour; ++root) {
        const auto schedule = *makeSchedule(
            algorithm, {.ranks = kFour, .elements = 100, .bandwidths = bandwidths, .root = root});
        EXPECT_EQ(schedule->root(), root);
        EXPECT_EQ(faultsOf(*schedule), "") << algorithm << " root " << root;
        if (root == 0) continue;
        // Relabelled says that rank 0 is the root.
        EXPECT_NE(faultsOf(Relabelled(*schedule, schedule->collective())), "");
      }
    }
    for (const int root : {-1, kFour}) {
      EXPECT_EQ(
          makeSchedule(algorithm, {.ranks = kFour, .elements = 1, .root = root}).status().code(),
          Code::kInvalidArgument);
    }
  }
}

TEST(CollectivesTest, WhatARankNeverHadIsNoticed) {
  // A ring AllReduce adds up blocks of others; an AllGather has only its own.
  EXPECT_THAT(faultsOf(Relabelled(*makeOfFour("ring"), Collective::kAllGather)),
              HasSubstr("moves elements that it does not have"));
  EXPECT_THAT(faultsOf(Relabelled(*makeOfFour("chain_reduce"), Collective::kBroadcast)),
              HasSubstr("moves elements that it does not have"));
}

TEST(CollectivesTest, BlocksInTheWrongPlaceAreNoticed) {
  RecordedSchedule swapped(*makeOfFour("pairwise_all_to_all"));
  std::swap(swapped.at(0, 0)[1].piece, swapped.at(0, 0)[3].piece);  // rank 0 sends 1's block to 2
  EXPECT_THAT(faultsOf(Relabelled(swapped, Collective::kAllToAll)),
              HasSubstr("are other elements than they should be"));
  RecordedSchedule halves(*makeOfFour("ring_send_recv", {}, 2));
  std::swap(halves.at(1, 0)[0].piece, halves.at(1, 0)[2].piece);
  EXPECT_THAT(faultsOf(Relabelled(halves, Collective::kSendRecv)),
              HasSubstr("are other elements than they should be"));
}

TEST(CollectivesTest, ACopyIsCheckedAtBothEnds) {
  RecordedSchedule copies(1, 2, 4);
  copies.at(0, 0) = {makeOp(OpKind::kCopy, 0, {2, 2})};
  copies.at(0, 0)[0].source = {0, 2};
  EXPECT_EQ(faultsOf(Relabelled(copies, Collective::kSendRecv)), "");
  copies.at(0, 1) = {makeOp(OpKind::kCopy, 0, {0, 2})};  // overwrites what the other reads
  copies.at(0, 1)[0].source = {0, 2};
  EXPECT_THAT(faultsOf(Relabelled(copies, Collective::kSendRecv)),
              HasSubstr("can run at the same time"));
}

double timeOverBound(const std::string& algorithm, const PortBandwidths& bandwidths) {
  return costOf(*makeOfFour(algorithm, bandwidths, 256), bandwidths)->timeOverBound;
}

TEST(CollectivesTest, WithBothDirectionsSlowTheyAreOnTheirBound) {
  // The cut around the straggler: 1/r of the fault-free time; only an AllReduce can do better.
  const std::vector<double> slow{1, 0.5, 1, 1};
  for (const auto& [algorithm, tolerance] : {std::pair("ring_reduce_scatter", kExact),
                                             {"ring_all_gather", kExact},
                                             {"pairwise_all_to_all", kExact},
                                             {"ring_send_recv", kExact},
                                             {"chain_broadcast", 0.02},
                                             {"chain_reduce", 0.02}}) {
    EXPECT_NEAR(timeOverBound(algorithm, slow), 1, tolerance) << algorithm;
    const Cost cost = *costOf(*makeOfFour(algorithm, slow, 256), slow);
    EXPECT_NEAR(cost.boundOverRing, 2, kExact) << algorithm;
  }
}

TEST(CollectivesTest, ChainsUseTheDirectionThatIsNotSlow) {
  const std::vector<double> healthy{1, 1, 1, 1};
  const std::vector<double> slow{1, 0.5, 1, 1};
  const PortBandwidths slowSend(slow, healthy), slowReceive(healthy, slow);
  EXPECT_NEAR(costOf(*makeOfFour("chain_broadcast", slowSend, 256), slowSend)->timeOverRing, 1,
              0.02);
  EXPECT_NEAR(costOf(*makeOfFour("chain_reduce", slowReceive, 256), slowReceive)->timeOverRing, 1,
              0.02);
  EXPECT_NEAR(costOf(*makeOfFour("chain_reduce", slowSend, 256), slowSend)->timeOverRing, 2, 0.02);
}

TEST(CollectivesTest, BoundsPerDirection) {
  const std::vector<double> healthy{1, 1, 1, 1};
  const std::vector<double> slow{1, 0.5, 1, 1};
  const auto bound = [&](Collective collective, bool send) {
    return lowerBound(collective,
                      send ? PortBandwidths(slow, healthy) : PortBandwidths(healthy, slow),
                      PortModel::kFluid);
  };
  // p-1 transfers over 3.5 ports, or what has to cross the cut.
  EXPECT_NEAR(bound(Collective::kReduceScatter, true), 0.75 / 0.5, kExact);
  EXPECT_NEAR(bound(Collective::kReduceScatter, false), 3 / 3.5, kExact);
  EXPECT_NEAR(bound(Collective::kAllGather, true), 3 / 3.5, kExact);
  EXPECT_NEAR(bound(Collective::kAllGather, false), 0.75 / 0.5, kExact);
  EXPECT_NEAR(bound(Collective::kBroadcast, true), 1, kExact);
  EXPECT_NEAR(bound(Collective::kBroadcast, false), 2, kExact);
  EXPECT_NEAR(bound(Collective::kReduce, true), 2, kExact);
  EXPECT_NEAR(bound(Collective::kReduce, false), 1, kExact);
  EXPECT_NEAR(bound(Collective::kAllToAll, true), 1.5, kExact);
  EXPECT_NEAR(bound(Collective::kSendRecv, false), 2, kExact);
}

/// What the busiest node sends or receives over its port, in parts of the data of a rank.
double overPorts(const Schedule& schedule, int ranksPerNode) {
  std::vector<std::int64_t> sent(static_cast<std::size_t>(schedule.ranks() / ranksPerNode));
  std::vector<std::int64_t> received(sent.size());
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    for (int lane = 0; lane < schedule.lanes(); ++lane) {
      for (std::int64_t i = 0; i < schedule.opCount(rank, lane); ++i) {
        const Op op = schedule.op(rank, lane, i);
        if (op.kind != OpKind::kSend || op.peer / ranksPerNode == rank / ranksPerNode) continue;
        sent[static_cast<std::size_t>(rank / ranksPerNode)] += op.piece.count;
        received[static_cast<std::size_t>(op.peer / ranksPerNode)] += op.piece.count;
      }
    }
  }
  const auto busiest = std::max(std::ranges::max(sent), std::ranges::max(received));
  return static_cast<double>(busiest) /
         static_cast<double>(dataElements(schedule.collective(), schedule.elements()));
}

TEST(CollectivesTest, WhatCrossesThePortsOfNodesIsWhatTheSchedulesSend) {
  constexpr std::int64_t kElements = 11 * 7 * 5 * 3 << 10;
  for (const auto& [nodes, perNode] : {std::pair(2, 2), {4, 2}, {3, 4}, {8, 1}, {2, 8}}) {
    const int ranks = nodes * perNode;
    for (const std::string_view algorithm :
         {"ring", "ring_reduce_scatter", "ring_all_gather", "chain_broadcast", "chain_reduce",
          "pairwise_all_to_all", "ring_send_recv"}) {
      const auto schedule =
          std::move(*makeSchedule(algorithm, {.ranks = ranks, .elements = kElements}));
      EXPECT_NEAR(faultFreeTime(schedule->collective(), ranks, perNode),
                  overPorts(*schedule, perNode), 1e-3)
          << algorithm << ", " << nodes << " x " << perNode;
    }
  }
}

TEST(CollectivesTest, BoundsOfNodesOfSeveralRanks) {
  using enum Collective;
  struct Row {
    Collective collective;
    int nodes, perNode;
    double faultFree, bound, half;  // the last with half of the port of one node
  };
  // By hand: 2 x 2 AllToAll, each of two ranks sends 2 blocks of 1/4 to the other node; 4 x 2, each
  // of two 6 of 1/8; 3 x 4, each of four 8 of 1/12.
  for (const Row& row : {Row{kAllToAll, 2, 2, 1, 1, 2},
                         {kAllToAll, 4, 2, 1.5, 1.5, 3},
                         {kAllToAll, 3, 4, 8.0 / 3, 8.0 / 3, 16.0 / 3},
                         {kReduceScatter, 4, 2, 7.0 / 8, 3.0 / 4, 3.0 / 2},
                         {kAllGather, 4, 2, 7.0 / 8, 3.0 / 4, 3.0 / 2},
                         {kReduceScatter, 2, 2, 3.0 / 4, 1.0 / 2, 1},
                         {kBroadcast, 4, 2, 1, 1, 2},
                         {kReduce, 4, 2, 1, 1, 2},
                         {kSendRecv, 4, 2, 1, 1, 2},
                         {kAllReduce, 4, 2, 7.0 / 4, 3.0 / 2, 2}}) {
    const std::string what =
        std::string(collectiveName(row.collective)) + ", " + std::to_string(row.nodes);
    const int ranks = row.nodes * row.perNode;
    EXPECT_NEAR(faultFreeTime(row.collective, ranks, row.perNode), row.faultFree, kExact) << what;
    std::vector<double> ports(static_cast<std::size_t>(row.nodes), 1.0);
    const auto bound = [&] {
      return lowerBound(row.collective, ports, PortModel::kFluid, row.perNode);
    };
    EXPECT_NEAR(bound(), row.bound, kExact) << what;
    ports[1] = 0.5;
    EXPECT_NEAR(bound(), row.half, kExact) << what;
  }
  EXPECT_EQ(faultFreeTime(kAllReduce, 4, 4), 0) << "nothing leaves a node";
}

TEST(CollectivesTest, NoScheduleOfNodesBeatsItsBound) {
  for (const Algorithm& algorithm : allAlgorithms()) {
    for (const double left : {1.0, 0.5}) {
      std::vector<double> ports(8, 1.0);
      ports[2] = ports[3] = left;
      const ScheduleRequest request{
          .ranks = 8, .elements = 1 << 16, .segments = 4, .bandwidths = ports, .ranksPerNode = 2};
      const auto schedule = makeSchedule(algorithm.name, request);
      if (!schedule.ok()) continue;
      const auto cost = costOf(**schedule, ports, {.ranksPerNode = 2});
      ASSERT_TRUE(cost.ok()) << algorithm.name;
      EXPECT_GE(cost->timeOverBound, 1 - 1e-3) << algorithm.name << ", " << left;
      if (algorithm.name != "pairwise_all_to_all") continue;
      EXPECT_NEAR(cost->timeOverBound, 1, 1e-2) << "each block crosses once, and no other way";
      EXPECT_NEAR(cost->time, 1.5 / left, 1e-2);
    }
  }
}

TEST(TreeTest, IsAtMostTwoLogarithmsDeep) {
  for (const auto& [ranks, depth] : {std::pair(2, 2), {4, 4}, {5, 4}, {8, 6}, {9, 6}}) {
    const auto tree = makeSchedule("tree", {.ranks = ranks, .elements = 64});
    const std::vector<double> healthy(static_cast<std::size_t>(ranks), 1.0);
    EXPECT_EQ(costOf(**tree, healthy)->depth, depth) << ranks;
  }
}

TEST(HalvingDoublingTest, IsAsDeepAsATreeAndMovesWhatARingDoes) {
  for (const int ranks : {2, 4, 8, 16}) {
    const std::vector<double> healthy(static_cast<std::size_t>(ranks), 1.0);
    const ScheduleRequest request{.ranks = ranks, .elements = 480};
    const auto cost = costOf(**makeSchedule("halving_doubling", request), healthy, {.alpha = 1});
    const auto tree = costOf(**makeSchedule("tree", request), healthy, {.alpha = 1});
    EXPECT_EQ(cost->depth, tree->depth) << ranks;
    EXPECT_NEAR(cost->time, faultFreeRingTime(ranks) + cost->depth, kExact) << ranks;
  }
}

TEST(HalvingDoublingTest, RanksBeyondAPowerOfTwoCostTwoMessages) {
  for (const auto& [ranks, depth] : {std::pair(3, 4), {5, 6}, {7, 6}, {9, 8}, {12, 8}}) {
    const std::vector<double> healthy(static_cast<std::size_t>(ranks), 1.0);
    const auto cost =
        costOf(**makeSchedule("halving_doubling", {.ranks = ranks, .elements = 480}), healthy);
    EXPECT_EQ(cost->depth, depth) << ranks;
    EXPECT_LE(cost->messagesPerRankMax, depth / 2 + depth / 2 - 1) << ranks;
  }
}

TEST(RelayTest, ComesCloseToTheBoundWhereOneDirectionIsSlow) {
  for (const double r : {0.5, 0.25, 0.125}) {
    const std::vector<double> healthy(8, 1.0);
    std::vector<double> slow = healthy;
    slow[1] = r;
    const PortBandwidths sending{slow, healthy}, receiving{healthy, slow};
    const auto ratio = [](std::string_view algorithm, const PortBandwidths& ports) {
      const ScheduleRequest request{
          .ranks = 8, .elements = 1 << 20, .segments = 16, .bandwidths = ports};
      return costOf(**makeSchedule(algorithm, request), ports)->timeOverBound;
    };
    // The way through a relay costs a segment more.
    constexpr double kPipelined = 1 + 1.0 / 16 + kExact;
    EXPECT_LE(ratio("relay_all_gather", sending), kPipelined) << r;
    EXPECT_LE(ratio("relay_reduce_scatter", receiving), kPipelined) << r;
    EXPECT_GE(ratio("ring_all_gather", sending), 0.85 / r) << r;
  }
}

}  // namespace
}  // namespace faultline::schedule
