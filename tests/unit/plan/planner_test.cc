#include "resilient_ccl/plan/planner.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "resilient_ccl/plan/hysteresis.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"

namespace faultline::plan {
namespace {

PlanRequest randomRequest(Random& random) {
  PlanRequest request;
  request.health.resize(1 + random.below(6));
  for (Health& port : request.health) {
    if (random.below(2) == 0) port.send = quantise(0.1 + 0.9 * random.unit());
    if (random.below(2) == 0) port.receive = quantise(0.1 + 0.9 * random.unit());
  }
  request.elements = static_cast<std::int64_t>(1) << random.below(24);
  return request;
}

TEST(PlannerTest, IsNeverSlowerThanAnyRingNorFasterThanTheBound) {
  for (std::uint64_t seed = 0; seed < FAULTLINE_DEFAULT_SEEDS; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const PlanRequest request = randomRequest(random);
    const LinkModel model{.latency = random.unit() * 1e-3,
                          .perMessage = random.unit() * 1e-4,
                          .bandwidth = 1e7 + random.unit() * 1e9};
    const auto plan = choosePlan(request, model);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    ASSERT_LE(plan->predicted, plan->ring);
    ASSERT_GE(plan->predicted, plan->bound * 0.999999);
    const auto ranks = static_cast<int>(request.health.size());
    if (ranks == 1) continue;
    // The ring as anybody would ask for it.
    schedule::PortBandwidths ports;
    for (const Health& port : request.health) {
      ports.send.push_back(fraction(port.send));
      ports.receive.push_back(fraction(port.receive));
    }
    const double unit = static_cast<double>(request.elements) * 4 / model.bandwidth;
    const auto ring = schedule::makeSchedule(
        "ring", {.ranks = ranks, .elements = request.elements, .bandwidths = ports});
    ASSERT_TRUE(ring.ok());
    const auto cost = schedule::costOf(
        **ring, ports, {.alpha = model.latency / unit, .perMessage = model.perMessage / unit});
    ASSERT_TRUE(cost.ok());
    ASSERT_LE(plan->predicted, cost->time * unit * 1.000001);
  }
}

// 32 MiB over ports of 400 Mbit/s, one of them at half of that.
TEST(PlannerTest, WithAStragglerComesCloseToTheBound) {
  PlanRequest request{.health = HealthVector(8), .elements = 8 << 20};
  const LinkModel model{.latency = 100e-6, .perMessage = 10e-6, .bandwidth = 50e6};
  const auto healthy = choosePlan(request, model);
  ASSERT_TRUE(healthy.ok());
  EXPECT_LE(healthy->predicted, healthy->bound * 1.02);
  request.health[3] = {.send = quantise(0.5), .receive = quantise(0.5)};
  const auto plan = choosePlan(request, model);
  ASSERT_TRUE(plan.ok());
  EXPECT_NE(plan->algorithm, "ring");
  EXPECT_LE(plan->predicted, plan->bound * 1.05);
  EXPECT_GE(plan->ring, plan->bound * 1.5);
}

TEST(PlannerTest, EqualRequestsGiveEqualHashesAndOthersDoNot) {
  const PlanRequest request{.health = HealthVector(4), .elements = 1 << 20};
  const LinkModel model;
  const std::uint64_t hash = choosePlan(request, model)->hash;
  EXPECT_EQ(choosePlan(request, model)->hash, hash);
  std::set<std::uint64_t> seen{hash};
  std::vector<PlanRequest> others(5, request);
  others[0].health[2].send = 1023;
  others[1].health[2].receive = 1023;
  others[2].health.resize(3);
  others[3].elements += 1;
  others[4].elementSize = 8;
  for (const PlanRequest& other : others) {
    EXPECT_TRUE(seen.insert(choosePlan(other, model)->hash).second);
  }
}

TEST(PlannerTest, NonsenseIsRefused) {
  EXPECT_FALSE(choosePlan({.health = HealthVector(2), .elements = -1}, {}).ok());
  EXPECT_FALSE(choosePlan({.health = {}, .elements = 1}, {}).ok());
  EXPECT_FALSE(choosePlan({.health = HealthVector(2), .elements = 1}, {.bandwidth = 0}).ok());
}

TEST(HealthTest, IsQuantisedToPartsAndNeverNothing) {
  EXPECT_EQ(quantise(1), 1024);
  EXPECT_EQ(quantise(0.5), 512);
  EXPECT_EQ(quantise(1e-9), 1);
  EXPECT_EQ(quantise(1.7), 1024);
  EXPECT_EQ(fraction(256), 0.25);
}

TEST(HysteresisTest, AChangeMustLastForTenCollectivesOrLong) {
  HealthVector whole(3), half(3);
  half[1].receive = 512;
  TimePoint now{};
  Hysteresis hysteresis(whole);
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(hysteresis.observe(half, now += 1ms));
  EXPECT_FALSE(hysteresis.observe(whole, now += 1ms)) << "and begins anew";
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(hysteresis.observe(half, now += 1ms));
  EXPECT_TRUE(hysteresis.observe(half, now += 1ms));
  hysteresis.planned(half);
  EXPECT_FALSE(hysteresis.observe(half, now += 1s));
  EXPECT_FALSE(hysteresis.observe(whole, now += 1s));
  EXPECT_TRUE(hysteresis.observe(whole, now += 200ms));
}

TEST(HysteresisTest, ASmallChangeIsNone) {
  HealthVector whole(2), almost(2), less(2);
  almost[0].send = 922;  // 0.9004
  less[0].send = 920;    // 0.898
  Hysteresis hysteresis(whole);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(hysteresis.observe(almost, TimePoint{} + i * 1s));
  EXPECT_FALSE(hysteresis.observe(less, TimePoint{}));
  EXPECT_TRUE(hysteresis.observe(less, TimePoint{} + 1s));
}

}  // namespace
}  // namespace faultline::plan
