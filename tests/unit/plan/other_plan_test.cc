#include <gtest/gtest.h>

#include "resilient_ccl/plan/planner.h"

// Plans of collectives besides AllReduce.

namespace faultline::plan {
namespace {

using schedule::Collective;

constexpr LinkModel kLink{.latency = 100e-6, .perMessage = 5e-6, .bandwidth = 50e6};

PlanRequest requestOf(Collective collective, double send, double receive) {
  PlanRequest request{.health = HealthVector(8), .elements = 4 << 20, .segments = 2};
  request.health[3] = {quantise(send), quantise(receive)};
  request.collective = collective;
  return request;
}

Plan planOf(Collective collective, double send, double receive) {
  auto plan = choosePlan(requestOf(collective, send, receive), kLink);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return *std::move(plan);
}

TEST(OtherPlanTest, RelaysAreForALossInOneDirection) {
  struct Case {
    Collective collective;
    double send, receive;
    const char* algorithm;
  };
  for (const auto& [collective, send, receive, algorithm] :
       {Case{Collective::kAllGather, 1, 1, "ring_all_gather"},
        Case{Collective::kAllGather, 0.25, 1, "relay_all_gather"},
        Case{Collective::kAllGather, 1, 0.25, "ring_all_gather"},
        Case{Collective::kAllGather, 0.25, 0.25, "ring_all_gather"},
        Case{Collective::kReduceScatter, 1, 1, "ring_reduce_scatter"},
        Case{Collective::kReduceScatter, 1, 0.25, "relay_reduce_scatter"},
        Case{Collective::kReduceScatter, 0.25, 1, "ring_reduce_scatter"},
        Case{Collective::kReduceScatter, 0.25, 0.25, "ring_reduce_scatter"}}) {
    const Plan plan = planOf(collective, send, receive);
    EXPECT_EQ(plan.algorithm, algorithm) << send << " " << receive;
    EXPECT_GE(plan.predicted, plan.bound) << algorithm;
    EXPECT_LE(plan.predicted, plan.ring) << algorithm;
    EXPECT_LE(plan.predicted, plan.bound * 1.15) << algorithm << " " << send << " " << receive;
    if (plan.algorithm.starts_with("relay_")) {
      EXPECT_GE(plan.ring, 3 * plan.predicted) << "a ring goes at a quarter";
      EXPECT_GT(plan.segments, 2);
    } else {
      EXPECT_EQ(plan.segments, 2) << "as asked for";
    }
    EXPECT_TRUE(plan.candidates.empty());
  }
}

TEST(OtherPlanTest, LatencyAloneIsNoReasonForRelays) {
  PlanRequest request = requestOf(Collective::kAllGather, 1, 1);
  request.elements = 1 << 10;
  const LinkModel slowToArrive{.latency = 1e-3, .perMessage = 1e-9, .bandwidth = 1e9};
  EXPECT_EQ(choosePlan(request, slowToArrive)->algorithm, "ring_all_gather");
}

TEST(OtherPlanTest, ChainsCostWhatTheirOrderSpares) {
  const double whole = planOf(Collective::kBroadcast, 1, 1).predicted;
  EXPECT_NEAR(planOf(Collective::kBroadcast, 0.25, 1).predicted, whole, 0.01 * whole);
  EXPECT_GE(planOf(Collective::kBroadcast, 1, 0.25).predicted, 3 * whole);
  EXPECT_NEAR(planOf(Collective::kReduce, 1, 0.25).predicted, whole, 0.01 * whole);
  EXPECT_GE(planOf(Collective::kReduce, 0.25, 1).predicted, 3 * whole);
  // The root has to send all, wherever it is.
  PlanRequest request = requestOf(Collective::kBroadcast, 0.25, 1);
  request.root = 3;
  const auto plan = choosePlan(request, kLink);
  ASSERT_TRUE(plan.ok());
  EXPECT_GE(plan->predicted, 3 * whole);
  EXPECT_NEAR(plan->bound, (16 << 20) / 0.25 / kLink.bandwidth, 1e-6);
}

TEST(OtherPlanTest, TheHashTellsCollectivesAndRootsApart) {
  const auto hash = [](Collective collective, int root) {
    PlanRequest request = requestOf(collective, 1, 1);
    request.root = root;
    return choosePlan(request, kLink)->hash;
  };
  EXPECT_EQ(hash(Collective::kBroadcast, 1), hash(Collective::kBroadcast, 1));
  EXPECT_NE(hash(Collective::kBroadcast, 1), hash(Collective::kBroadcast, 2));
  EXPECT_NE(hash(Collective::kReduce, 1), hash(Collective::kBroadcast, 1));
}

TEST(OtherPlanTest, WhatHasNothingToChooseIsRefused) {
  EXPECT_FALSE(plannable(Collective::kAllToAll));
  EXPECT_FALSE(plannable(Collective::kSendRecv));
  EXPECT_FALSE(choosePlan(requestOf(Collective::kAllToAll, 1, 1), kLink).ok());
  PlanRequest request = requestOf(Collective::kBroadcast, 1, 1);
  request.root = 8;
  EXPECT_FALSE(choosePlan(request, kLink).ok());
}

}  // namespace
}  // namespace faultline::plan
