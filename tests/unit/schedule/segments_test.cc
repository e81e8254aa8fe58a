#include "resilient_ccl/schedule/segments.h"

#include <gtest/gtest.h>

#include "resilient_ccl/schedule/cost.h"
#include "tests/support/csv_data.h"
#include "tests/unit/schedule/one_straggler.h"

namespace faultline::schedule {
namespace {

constexpr int kMost = 256;

/// The wire of the independent simulation: 50 GB/s, 5 us per hop, 0.5 us of port time per message.
MessageCost wireFor(double mebibytes) {
  const double unit = mebibytes * 1048576 / 50e9;
  return {.alpha = 5e-6 / unit, .perMessage = 0.5e-6 / unit};
}

Cost played(std::string_view algorithm, ScheduleRequest request, int segments,
            const MessageCost& message, PortModel ports) {
  request.segments = segments;
  const auto cost =
      costOf(**makeSchedule(algorithm, request), request.bandwidths,
             {.portModel = ports, .alpha = message.alpha, .perMessage = message.perMessage});
  EXPECT_TRUE(cost.ok());
  return *cost;
}

TEST(SegmentsTest, OnOnePortTheyAreAsGoodAsTheBestOfTheOracle) {
  // Made by an independent program (tests/data/README.md), which tried 1, 2, 4 .. 256 segments.
  const auto rows = test::csvRows<int, double, double, int, double>("optcc_segments.csv");
  EXPECT_EQ(rows.size(), 60u);
  double sum = 0;
  for (const auto& [ranks, r, mebibytes, bestK, best] : rows) {
    const ScheduleRequest request{.ranks = ranks,
                                  .elements = std::int64_t{1} << 40,
                                  .bandwidths = oneStraggler(ranks, r),
                                  .shares = PortModel::kOnePort};
    const MessageCost message = wireFor(mebibytes);
    const auto with = [&](int segments) {
      return played("optcc", request, segments, message, PortModel::kOnePort).timeOverRing;
    };
    EXPECT_NEAR(with(bestK), best, 1e-6 * best)
        << ranks << " ranks, one at " << r << ", " << mebibytes << " MiB";
    const int chosen = bestSegments("optcc", request, message, kMost, PortModel::kOnePort);
    const double ratio = with(chosen) / best;
    EXPECT_LE(ratio, 1.10) << ranks << " ranks, one at " << r << ", " << mebibytes
                           << " MiB: " << chosen << " segments chosen, best " << bestK;
    sum += ratio;
  }
  EXPECT_LE(sum / static_cast<double>(rows.size()), 1.006);
}

TEST(SegmentsTest, OptccR2OnOnePortIsAsGoodAsTheSearch) {
  double sum = 0;
  int cells = 0;
  for (const int ranks : {4, 8, 16}) {
    for (const double mebibytes : {8, 128, 1024, 4096}) {
      const ScheduleRequest request{.ranks = ranks,
                                    .elements = std::int64_t{1} << 40,
                                    .bandwidths = oneStraggler(ranks, 0.5)};
      const MessageCost message = wireFor(mebibytes);
      const auto with = [&](int segments) {
        return played("optcc_r2", request, segments, message, PortModel::kOnePort).time;
      };
      double least = with(1);
      for (int k = 2; k <= 64; k *= 2) least = std::min(least, with(k));
      const int chosen = bestSegments("optcc_r2", request, message, 64, PortModel::kOnePort);
      const double ratio = with(chosen) / least;
      EXPECT_LE(ratio, 1.10) << ranks << " ranks, " << mebibytes << " MiB: " << chosen;
      sum += ratio;
      ++cells;
    }
  }
  EXPECT_LE(sum / cells, 1.005);
}

TEST(SegmentsTest, ThirtyTwoRanksKeepTheTargets) {
  // Over the fault-free ring on the same wire, one rank at 1/2 (facts of schedule D). On fluid
  // ports the formula has its property test.
  constexpr PortModel kPorts = PortModel::kOnePort;
  for (const auto& [mebibytes, target] : {std::pair{1024, 1.09}, std::pair{4096, 1.06}}) {
    const ScheduleRequest request{.ranks = 32,
                                  .elements = std::int64_t{mebibytes} << 18,
                                  .bandwidths = oneStraggler(32, 0.5)};
    const MessageCost message = wireFor(mebibytes);
    const int chosen = bestSegments("optcc", request, message, kMost, kPorts);
    EXPECT_LE(played("optcc", request, chosen, message, kPorts).timeOverRing, target)
        << mebibytes << " MiB, " << chosen << " segments";
  }
}

}  // namespace
}  // namespace faultline::schedule
