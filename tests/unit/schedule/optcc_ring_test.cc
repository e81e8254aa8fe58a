#include "resilient_ccl/schedule/optcc_ring.h"

#include <gtest/gtest.h>

#include <map>

#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"
#include "tests/support/csv_data.h"

namespace faultline::schedule {
namespace {

/// (ranks, segments, rank, lane) -> (peer, chunk) of the sends in order.
using SendKey = std::tuple<int, int, int, int>;

TEST(OptccRingTest, SendsWhatTheOracleSendsInItsOrder) {
  std::map<SendKey, std::vector<std::pair<int, int>>> expected;
  for (const auto& [ranks, segments, rank, lane, peer, chunk] :
       test::csvRows<int, int, int, int, int, int>("optcc_r2_messages.csv")) {
    expected[{ranks, segments, rank, lane}].push_back({peer, chunk});
  }
  ASSERT_EQ(expected.size(), 3u * 2 + 4 * 2 + 5 * 2 + 7 * 2 - 4);  // the straggler has one lane
  for (const auto& [key, sends] : expected) {
    const auto& [ranks, segments, rank, lane] = key;
    const std::int64_t chunks = segments * (ranks - 1);
    constexpr std::int64_t kChunk = 10;
    const auto schedule = optccRing(ranks, chunks * kChunk, segments, ranks - 1);
    std::vector<std::pair<int, int>> actual;
    for (std::int64_t i = 0; i < schedule->opCount(rank, lane); ++i) {
      const Op op = schedule->op(rank, lane, i);
      if (op.kind != OpKind::kSend || op.piece.count == 0) continue;
      actual.push_back({op.peer, static_cast<int>(op.piece.offset / kChunk)});
    }
    EXPECT_EQ(actual, sends) << ranks << " ranks, rank " << rank << " lane " << lane;
  }
}

TEST(OptccRingTest, TakesTheTimeOfItsFormula) {
  constexpr int kSegments = 32;
  for (const int ranks : {3, 4, 8}) {
    for (const double r : {0.5, 0.25}) {
      std::vector<double> bandwidths(static_cast<std::size_t>(ranks), 1.0);
      bandwidths[1] = r;
      const auto schedule = makeSchedule(
          "optcc_r2",
          {.ranks = ranks, .elements = 1 << 22, .segments = kSegments, .bandwidths = bandwidths});
      const double n = ranks - 1;
      const double formula = (kSegments * n + 2 * n + 1) * std::max(2.0, 1 / r) / (kSegments * n);
      const auto cost = costOf(**schedule, bandwidths);
      ASSERT_TRUE(cost.ok());
      EXPECT_LE(cost->time, formula * 1.06) << ranks << " " << r;
      EXPECT_GE(cost->timeOverBound, 1) << ranks << " " << r;
    }
  }
}

TEST(OptccRingTest, ALoneNeighbourIsARing) {
  EXPECT_EQ((*makeSchedule("optcc_r2", {.ranks = 2, .elements = 10}))->algorithm(), "ring");
}

}  // namespace
}  // namespace faultline::schedule
