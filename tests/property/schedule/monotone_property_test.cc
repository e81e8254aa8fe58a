#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "base/random.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"

namespace faultline::schedule {
namespace {

// Invariants 7 and 8 of the schedule's specification: less bandwidth is never better, and which
// rank is slow does not matter.

// So many that the rounding of shares to elements does not show.
constexpr std::int64_t kElements = std::int64_t{1} << 36;
constexpr double kRounding = 1e-6;

/// Healthy ranks but one to three, at 1/8 to 7/8 in each direction.
PortBandwidths someStragglers(int ranks, Random& random, std::uint64_t most) {
  PortBandwidths bandwidths = std::vector<double>(static_cast<std::size_t>(ranks), 1.0);
  for (std::uint64_t left = 1 + random.below(most); left > 0; --left) {
    const auto rank = random.below(static_cast<std::uint64_t>(ranks));
    bandwidths.send[rank] = bandwidths.receive[rank] = static_cast<double>(1 + random.below(7)) / 8;
  }
  return bandwidths;
}

double timeOf(std::string_view algorithm, const PortBandwidths& bandwidths, int segments,
              PortModel ports) {
  const auto schedule = makeSchedule(algorithm, {.ranks = static_cast<int>(bandwidths.size()),
                                                 .elements = kElements,
                                                 .segments = segments,
                                                 .bandwidths = bandwidths,
                                                 .shares = ports});
  EXPECT_TRUE(schedule.ok()) << schedule.status().toString();
  const auto cost = costOf(**schedule, bandwidths, {.portModel = ports});
  EXPECT_TRUE(cost.ok()) << cost.status().toString();
  return cost->time;
}

std::string describe(const PortBandwidths& bandwidths, int segments, PortModel ports) {
  std::string text = fmt::format("{} segments, {} ports:", segments,
                                 ports == PortModel::kFluid ? "fluid" : "one-port");
  for (const double b : bandwidths.send) text += fmt::format(" {}", b);
  return text;
}

TEST(MonotoneBound, LessBandwidthNeverLowersIt) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    const int ranks = 2 + static_cast<int>(random.below(16));
    PortBandwidths bandwidths = someStragglers(ranks, random, 3);
    for (const PortModel ports : {PortModel::kFluid, PortModel::kOnePort}) {
      const double before = lowerBound(bandwidths, ports);
      PortBandwidths less = bandwidths;
      const auto rank = random.below(static_cast<std::uint64_t>(ranks));
      const auto directions = random.below(3);  // the one, the other, or both
      if (directions != 1) less.send[rank] *= 0.9;
      if (directions != 0) less.receive[rank] *= 0.9;
      EXPECT_GE(lowerBound(less, ports), before * (1 - 1e-12))
          << "seed " << seed << ": " << describe(bandwidths, 1, ports);
    }
  }
}

/// `rank` with nine tenths of its bandwidth.
PortBandwidths aTenthLess(PortBandwidths bandwidths, std::size_t rank) {
  bandwidths.send[rank] *= 0.9;
  bandwidths.receive[rank] *= 0.9;
  return bandwidths;
}

struct MayGain {
  std::string algorithm;
  /// Share of its time that a plan may win when one port gets slower. Not nothing: on ports that
  /// are shared freely, a message that slows down leaves room to others, which may be more urgent.
  double part = 0;

  friend void PrintTo(const MayGain& value, std::ostream* out) { *out << value.algorithm; }
};

class SamePlan : public testing::TestWithParam<MayGain> {};

TEST_P(SamePlan, ASlowerPortHardlyEverHelps) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    const int ranks = 3 + static_cast<int>(random.below(6));
    const int segments = 1 << random.below(4);
    const PortBandwidths bandwidths = someStragglers(ranks, random, 3);
    const auto slower = random.below(static_cast<std::uint64_t>(ranks));
    const auto schedule = makeSchedule(
        GetParam().algorithm,
        {.ranks = ranks, .elements = kElements, .segments = segments, .bandwidths = bandwidths});
    ASSERT_TRUE(schedule.ok()) << schedule.status().toString();
    const auto before = costOf(**schedule, bandwidths);
    const auto after = costOf(**schedule, aTenthLess(bandwidths, slower));
    ASSERT_TRUE(before.ok() && after.ok());
    const std::string what = fmt::format("seed {}, rank {} slower; {}", seed, slower,
                                         describe(bandwidths, segments, PortModel::kFluid));
    EXPECT_GE(after->time, before->time * (1 - GetParam().part - kRounding)) << what;
    EXPECT_LE(after->time, before->time / 0.9 * (1 + GetParam().part + kRounding)) << what;
    EXPECT_GE(after->time, before->boundTime) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(AllReduce, SamePlan,
                         testing::Values(MayGain{"ring"}, MayGain{"tree"}, MayGain{"optcc", 0.025},
                                         MayGain{"optcc_r2", 0.035}, MayGain{"r2_allreduce", 0.01},
                                         MayGain{"r2_recursive", 0.01},
                                         MayGain{"halving_doubling", 0.08}),
                         [](const auto& instance) { return instance.param.algorithm; });

TEST(NewPlan, OptccForASlowerStragglerIsHardlyEverFaster) {
  constexpr double kMayGain = 0.01;  // the shares are others (facts: 0.9 % in 300 cases)
  for (const PortModel ports : {PortModel::kFluid, PortModel::kOnePort}) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      Random random(seed);
      const int ranks = 3 + static_cast<int>(random.below(6));
      constexpr int kSegments = 64;
      const PortBandwidths bandwidths = someStragglers(ranks, random, 1);
      const auto straggler = static_cast<std::size_t>(std::ranges::min_element(bandwidths.send) -
                                                      bandwidths.send.begin());
      const double before = timeOf("optcc", bandwidths, kSegments, ports);
      const double after = timeOf("optcc", aTenthLess(bandwidths, straggler), kSegments, ports);
      EXPECT_GE(after, before * (1 - kMayGain))
          << "seed " << seed << ": " << describe(bandwidths, kSegments, ports);
    }
  }
}

/// Those for which all ranks are alike; in a tree, or in rounds of halving, places differ.
class Relabelled : public testing::TestWithParam<std::string> {};

TEST_P(Relabelled, TakesTheSameTimeWhicheverRankIsSlow) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    const int ranks = 3 + static_cast<int>(random.below(6));
    const int segments = 1 << random.below(5);
    const PortBandwidths bandwidths = someStragglers(ranks, random, 1);
    PortBandwidths relabelled = bandwidths;
    for (std::size_t i = relabelled.size() - 1; i > 0; --i) {
      const auto other = random.below(i + 1);
      std::swap(relabelled.send[i], relabelled.send[other]);
      std::swap(relabelled.receive[i], relabelled.receive[other]);
    }
    const double before = timeOf(GetParam(), bandwidths, segments, PortModel::kFluid);
    const double after = timeOf(GetParam(), relabelled, segments, PortModel::kFluid);
    EXPECT_NEAR(after, before, kRounding * before)
        << "seed " << seed << ": " << describe(bandwidths, segments, PortModel::kFluid) << " -> "
        << describe(relabelled, segments, PortModel::kFluid);
  }
}

/// Those whose schedule knows ranks by their distance only.
class Turned : public testing::TestWithParam<std::string> {};

TEST_P(Turned, IsTheSameSchedule) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    const int ranks = 3 + static_cast<int>(random.below(6));
    const int by = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(ranks - 1)));
    const auto turned = [&](int rank) { return (rank + by) % ranks; };
    ScheduleRequest request{.ranks = ranks,
                            .elements = kElements,
                            .segments = 1 << random.below(4),
                            .bandwidths = someStragglers(ranks, random, 3)};
    const auto original = *makeSchedule(GetParam(), request);
    const PortBandwidths before = request.bandwidths;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto from = static_cast<std::size_t>(rank);
      const auto to = static_cast<std::size_t>(turned(rank));
      request.bandwidths.send[to] = before.send[from];
      request.bandwidths.receive[to] = before.receive[from];
    }
    const auto other = *makeSchedule(GetParam(), request);
    ASSERT_EQ(other->lanes(), original->lanes());
    for (int rank = 0; rank < ranks; ++rank) {
      for (int lane = 0; lane < original->lanes(); ++lane) {
        SCOPED_TRACE(fmt::format("seed {}, by {}, rank {} lane {}; {}", seed, by, rank, lane,
                                 describe(before, request.segments, PortModel::kFluid)));
        ASSERT_EQ(other->opCount(turned(rank), lane), original->opCount(rank, lane));
        for (std::int64_t i = 0; i < original->opCount(rank, lane); ++i) {
          const Op expected = original->op(rank, lane, i);
          const Op op = other->op(turned(rank), lane, i);
          ASSERT_EQ(op.kind, expected.kind) << "op " << i;
          ASSERT_EQ(op.peer, expected.peer < 0 ? expected.peer : turned(expected.peer))
              << "op " << i;
          // Pieces lie elsewhere and are rounded there.
          ASSERT_NEAR(static_cast<double>(op.piece.count),
                      static_cast<double>(expected.piece.count), 1)
              << "op " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllReduce, Relabelled, testing::Values("ring", "optcc", "optcc_r2"),
                         [](const auto& instance) { return instance.param; });
INSTANTIATE_TEST_SUITE_P(AllReduce, Turned, testing::Values("ring", "optcc"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace faultline::schedule
