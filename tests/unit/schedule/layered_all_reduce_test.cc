#include "resilient_ccl/schedule/layered_all_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/ring_lane.h"
#include "tests/support/csv_data.h"

namespace faultline::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kLayeredElements = std::int64_t{1} << 24;

double timeOverRing(const std::string& algorithm, const std::vector<double>& bandwidths,
                    int segments) {
  const auto schedule = makeSchedule(algorithm, {.ranks = static_cast<int>(bandwidths.size()),
                                                 .elements = kLayeredElements,
                                                 .segments = segments,
                                                 .bandwidths = bandwidths});
  return costOf(**schedule, bandwidths)->timeOverRing;
}

TEST(LayeredTest, R2AllReduceIsNearTheFormulaOfItsAuthors) {
  const auto rows = test::csvRows<int, double, double>("r2_allreduce_model.csv");
  EXPECT_EQ(rows.size(), 15u);
  for (const auto& [ranks, r, model] : rows) {
    std::vector<double> bandwidths(static_cast<std::size_t>(ranks), 1.0);
    bandwidths[1] = r;
    constexpr int kSegments = 64;
    const double time = timeOverRing("r2_allreduce", bandwidths, kSegments);
    EXPECT_LE(time, model * 1.05) << ranks << " ranks, one at " << r;
    EXPECT_GE(time, model * 0.98) << ranks << " ranks, one at " << r;
  }
}

TEST(LayeredTest, RecursionHelpsWhereBandwidthsDiffer) {
  const std::vector<double> bandwidths{1, 0.25, 1, 0.75, 1, 1, 1, 1};
  const double two = timeOverRing("r2_allreduce", bandwidths, 64);
  const double recursive = timeOverRing("r2_recursive", bandwidths, 64);
  EXPECT_LT(recursive, two);
  EXPECT_LT(two, timeOverRing("ring", bandwidths, 2));
}

TEST(LayeredTest, LayersPeelOffTheSlowest) {
  const auto layers = ringLayers(4, 1000, 64, {1, 0.25, 1, 0.5}, true);
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_THAT(layers[0].members, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(layers[1].members, ElementsAre(0, 2, 3));
  EXPECT_THAT(layers[1].excluded, ElementsAre(1));
  EXPECT_THAT(layers[2].members, ElementsAre(0, 2));
  EXPECT_THAT(layers[2].excluded, ElementsAre(1, 3));
  // Rates 1/4, 1/4, 1/2 over the times per element 3/2, 4/3, 1.
  EXPECT_EQ(layers[0].part.count + layers[1].part.count + layers[2].part.count, 1000);
  EXPECT_NEAR(static_cast<double>(layers[1].part.count) / layers[0].part.count, 9.0 / 8, 0.01);
  EXPECT_NEAR(static_cast<double>(layers[2].part.count) / layers[0].part.count, 3, 0.02);
}

// r2ccl.md 2.2, with the K that is used, where there are chunks for four turns.
TEST(LayeredTest, R2AllReduceInTurnsIsNearTheFormula) {
  for (const auto& [ranks, segments] : {std::pair{4, 16}, {4, 64}, {8, 32}, {8, 64}, {16, 64}}) {
    for (const double r : {0.25, 0.5}) {
      const double p = ranks, n = p - 1;
      const double rings = (1 - r) * n / (n - 1), whole = r * p / (p - 1);
      const double y = rings / (rings + whole);
      const double time = 2 * n / p * (1 - y) / r + y / r * (1 + 1.0 / segments);
      std::vector<double> bandwidths(static_cast<std::size_t>(ranks), 1.0);
      bandwidths[1] = r;
      EXPECT_LE(timeOverRing("r2_allreduce", bandwidths, segments), 1.03 * time / (2 * n / p))
          << ranks << " ranks, one at " << r << ", " << segments << " segments";
    }
  }
}

TEST(LayeredTest, RingsTakeTurnsWhereFastPortsHaveTime) {
  const auto turns = [](int segments, const std::vector<double>& bandwidths) {
    const int ranks = static_cast<int>(bandwidths.size());
    return ringLayers(ranks, 100'000, segments, bandwidths, false).at(1).turns;
  };
  EXPECT_EQ(turns(32, {1, 0.5, 1, 1, 1, 1, 1, 1}), 4);
  EXPECT_EQ(turns(16, {1, 0.5, 1, 1, 1, 1, 1, 1}), 2) << "no more chunks than segments";
  EXPECT_EQ(turns(32, {1, 0.75, 1, 1, 1, 1, 1, 1}), 1) << "all ports are busy";
  EXPECT_EQ(turns(32, {1, 0.5, 1, 0.5, 1, 1, 1, 1}), 1) << "two are left out";
}

TEST(LayeredTest, ALaneOfTheNextTurnBeginsWhenTheRingIsDone) {
  const std::vector<double> bandwidths{1, 0.5, 1, 1};
  const auto layers = ringLayers(4, 48'000, 32, bandwidths, false);
  ASSERT_EQ(layers[1].turns, 4);
  const auto schedule = makeSchedule(
      "r2_allreduce",
      {.ranks = 4, .elements = 48'000, .segments = 32, .bandwidths = {bandwidths, bandwidths}});
  for (int i = 0; i < layers[1].lanes * layers[1].turns; ++i) {
    const Op first = (*schedule)->op(2, layers[0].lanes + i, 0);
    if (i < layers[1].lanes) {
      EXPECT_EQ(first.waitCount, 0);
      continue;
    }
    ASSERT_EQ(first.waitCount, 1);
    EXPECT_EQ(first.waits[0].lane, layers[0].lanes + i - layers[1].lanes);
    const Op last = (*schedule)->op(2, first.waits[0].lane, first.waits[0].op);
    EXPECT_EQ(last.kind, OpKind::kRecv);
    EXPECT_EQ(last.piece.count, first.waits[0].count);
  }
}

// Over rails that two have lost one member could not hear both.
TEST(LayeredTest, SeveralExcludedRanksDoNotAllSendToOneMember) {
  const std::vector<double> bandwidths{1, 0.5, 1, 0.5, 1, 1, 1, 1};
  const auto schedule = makeSchedule(
      "r2_allreduce",
      {.ranks = 8, .elements = 1 << 20, .segments = 32, .bandwidths = {bandwidths, bandwidths}});
  const auto layers = ringLayers(8, 1 << 20, 32, bandwidths, false);
  std::int64_t all = 0;
  std::vector<std::int64_t> to(8, 0);
  for (int lane = layers[0].lanes; lane < (*schedule)->lanes(); ++lane) {
    for (std::int64_t i = 0; i < (*schedule)->opCount(1, lane); ++i) {
      const Op op = (*schedule)->op(1, lane, i);
      if (op.kind != OpKind::kSend) continue;
      all += op.piece.count;
      to[static_cast<std::size_t>(op.peer)] += op.piece.count;
    }
  }
  EXPECT_EQ(all, layers[1].part.count);
  EXPECT_LE(*std::ranges::max_element(to), all / layers[1].lanes + 1);
}

TEST(LayeredTest, WithoutAGainThereIsOneRing) {
  // Healthy; two ranks; and one segment, where the pipeline takes as long as it saves.
  EXPECT_EQ(ringLayers(4, 1000, 64, {}, false).size(), 1u);
  EXPECT_THAT(ringLayers(2, 1000, 64, {1, 0.5}, false).at(0).excluded, IsEmpty());
  EXPECT_EQ(ringLayers(8, 1000, 1, {1, 0.5, 1, 1, 1, 1, 1, 1}, false).size(), 1u);
}

TEST(RingLaneTest, KnowsTheLastUseOfEveryChunk) {
  for (int ranks = 2; ranks <= 6; ++ranks) {
    const RingLane ring{ranks, {0, 60}};
    for (int position = 0; position < ranks; ++position) {
      for (int chunk = 0; chunk < ranks; ++chunk) {
        std::int64_t receive = -1, send = -1;
        for (std::int64_t i = 0; i < ring.opCount(); ++i) {
          const Op op = ring.op(position, 0, i);
          if (op.piece.offset != ring.chunk(chunk).offset) continue;
          (op.kind == OpKind::kSend ? send : receive) = i;
        }
        EXPECT_EQ(ring.lastReceiveOf(position, chunk), receive);
        // A send before the last receive is over when that comes.
        EXPECT_EQ(ring.lastSendOf(position, chunk), send > receive ? send : -1);
      }
    }
  }
}

}  // namespace
}  // namespace faultline::schedule
