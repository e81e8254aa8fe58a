#include "resilient_ccl/schedule/optcc_all_reduce.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"
#include "tests/support/csv_data.h"

namespace faultline::schedule {
namespace {

using Message = std::tuple<int, std::int64_t, std::int64_t>;  // peer, begin, end

struct Case {
  ScheduleRequest request;
  std::map<std::pair<int, int>, std::vector<Message>> sends;  ///< by (rank, lane), in order
};

/// Made by an independent program; see tests/data/README.md.
std::map<int, Case> oracleCases() {
  std::map<int, Case> cases;
  for (const auto& [number, ranks, elements, segments, per1024, rank, kind, peer, begin, end] :
       test::csvRows<int, int, int, int, std::string, int, std::string, int, int, int>(
           "optcc_messages.csv")) {
    Case& entry = cases[number];
    entry.request = {.ranks = ranks, .elements = elements, .segments = segments};
    std::istringstream steps(per1024);
    std::vector<double> bandwidths;
    for (int step = 0; steps >> step;) bandwidths.push_back(step / 1024.0);
    entry.request.bandwidths = bandwidths;
    const int lane = kind == "contribution" ? 0 : 1;
    entry.sends[{rank, lane}].push_back({peer, begin, end});
  }
  return cases;
}

TEST(OptccTest, SendsWhatTheOracleSendsInItsOrder) {
  const auto cases = oracleCases();
  EXPECT_EQ(cases.size(), 7u);
  for (const auto& [number, expected] : cases) {
    const auto schedule = makeSchedule("optcc", expected.request);
    ASSERT_TRUE(schedule.ok());
    for (int rank = 0; rank < expected.request.ranks; ++rank) {
      for (const int lane : {0, 1}) {
        std::vector<Message> sends;
        for (std::int64_t i = 0; i < (*schedule)->opCount(rank, lane); ++i) {
          const Op op = (*schedule)->op(rank, lane, i);
          if (op.kind != OpKind::kSend || op.piece.count == 0) continue;
          sends.push_back({op.peer, op.piece.offset, op.piece.offset + op.piece.count});
        }
        const auto found = expected.sends.find({rank, lane});
        const bool none = found == expected.sends.end();
        EXPECT_EQ(sends, none ? std::vector<Message>() : found->second)
            << "case " << number << " rank " << rank << " lane " << lane;
      }
    }
  }
}

std::vector<double> withStragglers(int ranks, const std::vector<double>& slow) {
  std::vector<double> bandwidths(static_cast<std::size_t>(ranks), 1.0);
  for (std::size_t i = 0; i < slow.size(); ++i) bandwidths[2 * i] = slow[i];
  return bandwidths;
}

/// Large enough for rounding of boundaries not to matter.
constexpr std::int64_t kLarge = 1 << 24;

TEST(OptccTest, IsOnTheFluidBoundUpToFillingThePipeline) {
  for (const int ranks : {2, 3, 4, 8}) {
    for (const auto& slow : std::vector<std::vector<double>>{
             {}, {0.875}, {0.75}, {0.5}, {0.25}, {0.5, 0.5}, {0.75, 0.25}}) {
      if (2 * slow.size() > static_cast<std::size_t>(ranks)) continue;
      const auto bandwidths = withStragglers(ranks, slow);
      constexpr int kSegments = 32;
      const auto schedule = makeSchedule(
          "optcc",
          {.ranks = ranks, .elements = kLarge, .segments = kSegments, .bandwidths = bandwidths});
      const auto cost = costOf(**schedule, bandwidths);
      ASSERT_TRUE(cost.ok());
      EXPECT_GE(cost->timeOverBound, 1 - 1e-6) << ranks;
      // The target of a fluid simulator is the bound (1 + 1/k) x 1.02; three ranks, one of them at
      // 3/4, are at 1.02003.
      EXPECT_LE(cost->timeOverBound, (1 + 1.0 / kSegments) * 1.0201) << ranks << " " << slow.size();
    }
  }
}

TEST(OptccTest, VolumesAreThoseOfTheShares) {
  // Invariant: the owner of the share w sends and receives S (1 + (p-2) w).
  const auto bandwidths = withStragglers(5, {0.75, 0.5});
  const Shares shares = ownerShares(5, bandwidths, PortModel::kFluid);
  const auto schedule = optccAllReduce(5, kLarge, 3, 0, shares);
  for (int rank = 0; rank < 5; ++rank) {
    std::int64_t sent = 0, received = 0;
    for (const int lane : {0, 1}) {
      for (std::int64_t i = 0; i < schedule->opCount(rank, lane); ++i) {
        const Op op = schedule->op(rank, lane, i);
        (op.kind == OpKind::kSend ? sent : received) += op.piece.count;
      }
    }
    const double w = static_cast<double>(shares.weight(rank)) / static_cast<double>(shares.total());
    EXPECT_NEAR(static_cast<double>(sent) / kLarge, 1 + 3 * w, 1e-5);
    EXPECT_EQ(sent, received);
  }
}

TEST(OptccTest, ALoneRankDoesNothing) {
  const auto schedule = makeSchedule("optcc", {.ranks = 1, .elements = 100, .segments = 4});
  EXPECT_EQ((*schedule)->opCount(0, 0) + (*schedule)->opCount(0, 1), 0);
}

// Two from each peer where there are several rails; on one rail more would collide.
TEST(OptccTest, TheWindowGrowsWithPeersAndRails) {
  for (const int peers : {0, 1, 3, 7, 31}) EXPECT_EQ(allReduceWindow(1, peers), 3);
  EXPECT_EQ(allReduceWindow(4, 3), 8) << "two for each rail";
  EXPECT_EQ(allReduceWindow(4, 7), 14) << "two from each peer";
  EXPECT_EQ(allReduceWindow(2, 7), 14);
  EXPECT_EQ(allReduceWindow(8, 3), 16);
  EXPECT_EQ(allReduceWindow(4, 0), 8) << "one node alone";
}

TEST(SharesTest, FluidSharesFillAllPorts) {
  // One straggler at 3/4 of p = 4: T = 6/3.75 = 1.6, w ~ b T - 1.
  const Shares shares = ownerShares(4, std::vector<double>{1, 0.75, 1, 1}, PortModel::kFluid);
  EXPECT_EQ(shares.weight(0) * 2, shares.weight(1) * 6);
  // At half the bandwidth or less it owns nothing.
  EXPECT_EQ(ownerShares(4, std::vector<double>{1, 0.5, 1, 1}, PortModel::kFluid).weight(1), 0);
  EXPECT_EQ(ownerShares(4, std::vector<double>{1, 0.1, 1, 1}, PortModel::kFluid).weight(1), 0);
}

TEST(SharesTest, OnePortSharesMakeMacroStepsEqual) {
  const Shares shares = ownerShares(4, std::vector<double>{1, 0.75, 1, 1}, PortModel::kOnePort);
  EXPECT_EQ(shares.weight(0), 2 * shares.weight(1));
  EXPECT_EQ(ownerShares(4, std::vector<double>{1, 0.5, 1, 1}, PortModel::kOnePort).weight(1), 0);
}

TEST(SharesTest, EqualRanksShareEqually) {
  for (const PortModel model : {PortModel::kFluid, PortModel::kOnePort}) {
    const Shares shares = ownerShares(3, std::vector<double>{0.5, 0.5, 0.5}, model);
    EXPECT_EQ(shares.weight(0), shares.weight(2));
    EXPECT_GT(shares.weight(0), 0);
    EXPECT_GT(ownerShares(2, std::vector<double>{1, 0.5}, model).weight(1), 0);
    EXPECT_EQ(ownerShares(1, {}, model).weight(0), 1);
  }
}

TEST(SharesTest, PiecesOfHugeBuffersCoverThem) {
  std::vector<double> bandwidths(1500, 1.0);
  for (std::size_t i = 0; i < bandwidths.size(); i += 7) {
    bandwidths[i] = 0.6 + 0.0001 * static_cast<double>(i);
  }
  const Shares shares = ownerShares(1500, bandwidths, PortModel::kFluid);
  const Piece whole{5, (std::int64_t{1} << 45) + 12345};
  std::int64_t next = whole.offset;
  for (int i = 0; i < 1500; ++i) {
    const Piece piece = shares.piece(whole, i);
    EXPECT_EQ(piece.offset, next);
    EXPECT_GE(piece.count, 0);
    next += piece.count;
  }
  EXPECT_EQ(next, whole.offset + whole.count);
}

TEST(BoundTest, DirectionsCountApart) {
  const std::vector<double> healthy{1, 1, 1, 1};
  const std::vector<double> slow{1, 0.5, 1, 1};
  for (const PortModel model : {PortModel::kFluid, PortModel::kOnePort}) {
    EXPECT_EQ(lowerBound(PortBandwidths(slow, healthy), model), 2);
    EXPECT_EQ(lowerBound(PortBandwidths(healthy, slow), model), 2);
  }
  // One port, r = 3/4 in one direction: 4(p-1) / (2(p-1) + 1/2 + 1).
  const std::vector<double> mild{1, 0.75, 1, 1};
  EXPECT_NEAR(lowerBound(PortBandwidths(mild, healthy), PortModel::kOnePort), 12 / 7.5, 1e-12);
}

}  // namespace
}  // namespace faultline::schedule
