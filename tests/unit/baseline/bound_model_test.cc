#include "harness/baseline/bound_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace faultline::baseline {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

RailDamage damage(int node, int rail, double offset, double duration, double lost = 1) {
  return {node, rail, 0, offset, duration, lost, lost};
}

/// The extra time as a share of the time without damage.
std::optional<double> overheadPercent(const JobModel& job, const std::vector<RailDamage>& damages) {
  const auto extra = leastExtraMs(job, damages);
  if (!extra) return std::nullopt;
  return 100 * *extra / (job.iterations * iterationTime(job.iteration));
}

/// Four nodes with two rails; communication does nothing but communicate.
JobModel communicationBound() {
  return {.nodes = 4,
          .rails = 2,
          .iterations = 10,
          .iteration = {.computeMs = 0, .buckets = 4, .bucketMs = 5},
          .gapMs = 0};
}

JobModel randomJob(Random& random) {
  JobModel job;
  job.nodes = 2 + static_cast<int>(random.below(7));
  job.rails = 1 + static_cast<int>(random.below(4));
  job.iterations = 1 + static_cast<int>(random.below(20));
  job.iteration = {.computeMs = 40 * random.unit(),
                   .buckets = 1 + static_cast<int>(random.below(6)),
                   .bucketMs = 0.1 + 10 * random.unit(),
                   .wireShare = random.unit()};
  job.gapMs = 10 * random.unit();
  return job;
}

/// Somewhere in the run and, so that the job ends, never for ever.
RailDamage randomDamage(Random& random, const JobModel& job) {
  return {static_cast<int>(random.below(static_cast<std::uint64_t>(job.nodes))),
          static_cast<int>(random.below(static_cast<std::uint64_t>(job.rails))),
          0,
          500 * random.unit(),
          300 * random.unit(),
          random.unit(),
          random.unit()};
}

TEST(FitIterationTest, TheModelTakesAsLongAsWasMeasured) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const double compute = 50 * random.unit();
    const double measured = compute + 100 * random.unit();
    const auto model = fitIteration(compute, 1 + static_cast<int>(random.below(8)), measured);
    EXPECT_NEAR(iterationTime(model), measured, 1e-9);
  }
}

TEST(FitIterationTest, KnownModels) {
  // The last of two buckets is ready at the end of the compute and waits for the first one.
  EXPECT_NEAR(fitIteration(30, 2, 60).bucketMs, 20, 1e-12);  // ready at 20, 30; done at 40, 60
  EXPECT_NEAR(fitIteration(30, 2, 35).bucketMs, 5, 1e-12);   // done at 25, 35: never busy for long
  EXPECT_NEAR(fitIteration(0, 4, 20).bucketMs, 5, 1e-12);
  EXPECT_NEAR(fitIteration(30, 2, 60, 0.8).bucketMs, 16.5, 1e-12);  // ready at 27, 30
}

TEST(FitIterationTest, NothingIsLeftForCommunicationWhenComputeTakesAllTime) {
  EXPECT_EQ(fitIteration(30, 4, 30).bucketMs, 0);
  EXPECT_EQ(fitIteration(30, 4, 25).bucketMs, 0);
  EXPECT_EQ(fitIteration(0, 0, 10).bucketMs, 0);
}

TEST(LeastSlowdownTest, KnownValues) {
  const std::vector<double> healthy{1, 1, 1, 1};
  EXPECT_EQ(leastSlowdown(healthy, healthy), 1);
  const std::vector<double> half{1, 0.5, 1, 1};
  // A node at half its bandwidth still has to move everything once: 2 against the ring's 1.5.
  EXPECT_NEAR(leastSlowdown(half, half), 2 / 1.5, 1e-12);
  EXPECT_NEAR(leastSlowdown(half, healthy), 2 / 1.5, 1e-12) << "one direction suffices";
  EXPECT_NEAR(leastSlowdown(healthy, half), 2 / 1.5, 1e-12);
  const std::vector<double> cut{1, 0, 1, 1};
  EXPECT_EQ(leastSlowdown(cut, healthy), kForever);
  EXPECT_EQ(leastSlowdown(std::vector<double>{0.5}, std::vector<double>{0}), 1) << "no network";
}

TEST(BoundModelTest, WithoutAFaultThereIsNoOverhead) {
  Random random(2);
  for (int i = 0; i < 200; ++i) {
    const JobModel job = randomJob(random);
    EXPECT_EQ(overheadPercent(job, {}), 0);
    auto harmless = randomDamage(random, job);
    harmless.lostTx = harmless.lostRx = 0;
    EXPECT_NEAR(*overheadPercent(job, std::vector{harmless}), 0, 1e-9);
  }
}

TEST(BoundModelTest, AFaultOfTheWholeRunOnACommunicationBoundJobIsTheSlowdown) {
  const std::vector<double> left{1, 0.5, 1, 1};
  EXPECT_NEAR(*overheadPercent(communicationBound(), std::vector{damage(1, 0, 0, kForever)}),
              100 * (leastSlowdown(left, left) - 1), 1e-9);
}

TEST(BoundModelTest, OnlyTimeOnTheWireIsStretched) {
  JobModel job = communicationBound();
  const std::vector down{damage(1, 0, 0, kForever)};
  const double whole = *leastExtraMs(job, down);
  job.iteration.wireShare = 0.25;
  EXPECT_NEAR(*leastExtraMs(job, down), whole / 4, 1e-9);
  job.iteration.wireShare = 0;
  EXPECT_EQ(leastExtraMs(job, down), 0);
  EXPECT_EQ(leastExtraMs(job, std::vector{damage(2, 0, 30, kForever), damage(2, 1, 40, kForever)}),
            0)
      << "nothing to communicate";
}

TEST(BoundModelTest, MoreDamageNeverGivesLess) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const JobModel job = randomJob(random);
    std::vector<RailDamage> damages;
    double before = 0;
    for (int i = 0; i < 6; ++i) {
      if (!damages.empty() && random.below(3) == 0) {
        RailDamage& worse = damages[random.below(damages.size())];
        worse.durationMs *= 1 + random.unit();
        worse.lostTx += (1 - worse.lostTx) * random.unit();
        worse.lostRx += (1 - worse.lostRx) * random.unit();
      } else {
        damages.push_back(randomDamage(random, job));
      }
      const auto bound = overheadPercent(job, damages);
      ASSERT_TRUE(bound);
      EXPECT_GE(*bound, before - 1e-9) << "seed " << seed << ", step " << i;
      before = *bound;
    }
  }
}

TEST(BoundModelTest, WhileANodeIsCutOffCommunicationStandsStill) {
  // 200 ms of work, 50 ms without any rail.
  const std::vector damages{damage(2, 0, 30, 50), damage(2, 1, 30, 50)};
  EXPECT_NEAR(*overheadPercent(communicationBound(), damages), 25, 1e-9);
  const std::vector half_as_long{damage(2, 0, 30, 50), damage(2, 1, 55, 25)};
  // 25 ms at 3/4 speed lose 6.25 ms, 25 ms at none lose 25 ms.
  EXPECT_NEAR(*overheadPercent(communicationBound(), half_as_long), 31.25 / 2, 1e-9);
}

TEST(BoundModelTest, AJobThatCannotEndHasNoBound) {
  const std::vector damages{damage(2, 0, 30, kForever), damage(2, 1, 40, kForever)};
  EXPECT_EQ(overheadPercent(communicationBound(), damages), std::nullopt);
}

TEST(BoundModelTest, DamagesOfOneRailDoNotAdd) {
  const std::vector once{damage(1, 0, 10, 100)};
  const std::vector twice{damage(1, 0, 10, 100), damage(1, 0, 10, 100, 0.5)};
  EXPECT_EQ(overheadPercent(communicationBound(), once),
            overheadPercent(communicationBound(), twice));
}

TEST(BoundModelTest, FaultsOutsideOfCommunicationCostNothing) {
  JobModel job = communicationBound();
  job.iteration = {.computeMs = 30, .buckets = 2, .bucketMs = 20};  // ready at 20, 30; end at 60
  job.gapMs = 15;
  // In the forward pass, and from the end of an iteration to the next one's first bucket.
  EXPECT_EQ(overheadPercent(job, std::vector{damage(1, 0, 0, 20)}), 0);
  EXPECT_EQ(overheadPercent(job, std::vector{damage(1, 0, 60, 35)}), 0);
  EXPECT_GT(*overheadPercent(job, std::vector{damage(1, 0, 60, 36)}), 0);
}

TEST(BoundModelTest, AFaultBeginsInItsIteration) {
  JobModel job = communicationBound();
  job.iteration = {.computeMs = 30, .buckets = 2, .bucketMs = 20};
  job.gapMs = 15;
  RailDamage late = damage(1, 0, 25, 10);
  const auto first = overheadPercent(job, std::vector{late});
  late.iteration = 9;
  EXPECT_NEAR(*overheadPercent(job, std::vector{late}), *first, 1e-9);
  late.iteration = 10;
  EXPECT_EQ(overheadPercent(job, std::vector{late}), 0) << "the job is over";
}

TEST(BoundModelTest, TimeHiddenBehindComputeIsFree) {
  // Five buckets ready every 8 ms, 2 ms each: all but the last have time to spare.
  JobModel job = communicationBound();
  job.iteration = {.computeMs = 60, .buckets = 5, .bucketMs = 2};
  job.iterations = 1;
  EXPECT_EQ(overheadPercent(job, std::vector{damage(1, 0, 0, 50)}), 0);
  EXPECT_NEAR(*overheadPercent(job, std::vector{damage(1, 0, 0, kForever)}),
              100 * (2 * (4.0 / 3) - 2) / 62, 1e-9)
      << "only the last bucket shows";
}

}  // namespace
}  // namespace faultline::baseline
