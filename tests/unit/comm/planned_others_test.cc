#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "resilient_ccl/comm/planned_program.h"
#include "resilient_ccl/plan/health_feed.h"
#include "tests/unit/comm/thread_job.h"

// Collectives besides AllReduce, planned for ports that lost bandwidth in one direction.

namespace faultline::comm {
namespace {

using schedule::Collective;
using ::testing::Contains;
using ::testing::ElementsAre;

constexpr int kOthersRanks = 4;
constexpr std::int64_t kBlock = 200'000;  // of a block

/// One rank that sends, or receives, with a quarter of its bandwidth.
plan::HealthVector slowOneWay(double send, double receive) {
  plan::HealthVector health(kOthersRanks);
  health[1] = {plan::quantise(send), plan::quantise(receive)};
  return health;
}

std::int32_t givenAt(int rank, std::int64_t element) {
  return static_cast<std::int32_t>(element % 1009 * (rank + 1));
}
std::int32_t totalAt(std::int64_t element) {
  return static_cast<std::int32_t>(element % 1009 * kOthersRanks * (kOthersRanks + 1) / 2);
}
std::vector<std::int32_t> othersData(int rank, std::int64_t count, std::int64_t first = 0) {
  std::vector<std::int32_t> data(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    data[static_cast<std::size_t>(i)] = givenAt(rank, first + i);
  }
  return data;
}
void expectWell(const std::shared_ptr<Work>& work) {
  const Status status = work->wait();
  ASSERT_TRUE(status.ok()) << status.message();
}

/// Each collective, out of place and in place, from root 2.
void exchangeAll(Communicator& comm) {
  constexpr int kRoot = 2;
  const int rank = comm.rank();
  const std::int64_t own = rank * kBlock, all = kOthersRanks * kBlock;
  const auto type = DataType::kI32;
  {
    const auto original = othersData(rank, all);
    auto source = original, inPlace = original;
    std::vector<std::int32_t> target(kBlock);
    expectWell(comm.reduceScatter(source.data(), target.data(), kBlock, type, ReduceOp::kSum));
    expectWell(
        comm.reduceScatter(inPlace.data(), inPlace.data() + own, kBlock, type, ReduceOp::kSum));
    auto expected = original;
    for (std::int64_t i = 0; i < kBlock; ++i) {
      ASSERT_EQ(target[static_cast<std::size_t>(i)], totalAt(own + i)) << i;
      expected[static_cast<std::size_t>(own + i)] = totalAt(own + i);
    }
    EXPECT_EQ(source, original);
    EXPECT_EQ(inPlace, expected) << "the blocks of others are theirs";
  }
  {
    const auto source = othersData(rank, kBlock, own);
    std::vector<std::int32_t> target(all), inPlace(all);
    std::ranges::copy(source, inPlace.begin() + own);
    expectWell(comm.allGather(source.data(), target.data(), kBlock, type));
    expectWell(comm.allGather(inPlace.data() + own, inPlace.data(), kBlock, type));
    for (std::int64_t i = 0; i < all; ++i) {
      ASSERT_EQ(target[static_cast<std::size_t>(i)], givenAt(static_cast<int>(i / kBlock), i)) << i;
    }
    EXPECT_EQ(inPlace, target);
  }
  {
    const auto source = othersData(rank, all);
    std::vector<std::int32_t> target(all), inPlace = source;
    expectWell(comm.broadcast(source.data(), target.data(), all, type, kRoot));
    expectWell(comm.broadcast(inPlace.data(), inPlace.data(), all, type, kRoot));
    EXPECT_EQ(target, othersData(kRoot, all));
    EXPECT_EQ(inPlace, target);
  }
  {
    const auto original = othersData(rank, all);
    auto source = original, inPlace = original;
    std::vector<std::int32_t> target(all, -1);
    expectWell(comm.reduce(source.data(), target.data(), all, type, ReduceOp::kSum, kRoot));
    expectWell(comm.reduce(inPlace.data(), inPlace.data(), all, type, ReduceOp::kSum, kRoot));
    EXPECT_EQ(source, original);
    if (rank != kRoot) return;
    for (std::int64_t i = 0; i < all; ++i) {
      ASSERT_EQ(target[static_cast<std::size_t>(i)], totalAt(i)) << i;
    }
    EXPECT_EQ(inPlace, target);
  }
}

/// The algorithms that all ranks used for `exchangeAll` under a health.
std::set<std::string> usedUnder(const plan::HealthVector& health) {
  auto feed = std::make_shared<plan::HealthFeed>();
  feed->set(health);
  std::mutex mutex;
  std::set<std::string> used;
  int tellers = 0;
  runJob(
      kOthersRanks,
      [&](Communicator& comm) {
        // The health takes effect at one operation.
        for (int i = 0; i < 400; ++i) {
          exchangeAll(comm);
          std::int32_t epoch = 0;
          for (const PlanEvent& event : comm.events().plans) {
            epoch = std::max(epoch, static_cast<std::int32_t>(event.epoch));
          }
          ASSERT_TRUE(
              comm.allReduce(&epoch, &epoch, 1, DataType::kI32, ReduceOp::kMin)->wait().ok());
          if (epoch > 0 || health == plan::HealthVector(kOthersRanks)) break;
        }
        exchangeAll(comm);
        EXPECT_TRUE(comm.barrier()->wait().ok());
        const CommunicatorEvents events = comm.events();
        EXPECT_TRUE(comm.finish().ok());
        const std::lock_guard lock(mutex);
        ++tellers;
        for (const PlanEvent& event : events.plans) {
          if (event.health != health || event.collective == Collective::kAllReduce) continue;
          used.insert(event.plan.algorithm);
          EXPECT_LE(event.plan.bound, event.plan.predicted) << event.plan.algorithm;
        }
      },
      [&](CommunicatorOptions& options) {
        options.planned = true;
        options.algorithm = CommunicatorOptions::kAnyAlgorithm;
        options.health = feed;
      });
  EXPECT_EQ(tellers, kOthersRanks);
  return used;
}

TEST(PlannedOthersTest, WholePortsHaveRingsAndChains) {
  EXPECT_THAT(
      usedUnder(plan::HealthVector(kOthersRanks)),
      ElementsAre("chain_broadcast", "chain_reduce", "ring_all_gather", "ring_reduce_scatter"));
}

TEST(PlannedOthersTest, RelaysSendForASlowSender) {
  EXPECT_THAT(usedUnder(slowOneWay(0.125, 1)), Contains("relay_all_gather"));
}

TEST(PlannedOthersTest, RelaysReceiveForASlowReceiver) {
  EXPECT_THAT(usedUnder(slowOneWay(1, 0.125)), Contains("relay_reduce_scatter"));
}

/// What rank 1 does of a chain that is planned for a health.
std::pair<std::size_t, std::size_t> chainOfRank1(Collective collective,
                                                 const plan::HealthVector& health) {
  const auto planned = planProgram(
      {}, health, {.elements = kBlock, .elementSize = 4, .collective = collective, .root = 0}, {},
      1);
  EXPECT_TRUE(planned.ok());
  const Program::Lane& lane = planned->program->lanes()[0];
  return {lane.sends.size(), lane.receives.size()};
}

TEST(PlannedOthersTest, TheLastOfAChainIsWhoSendsOrReceivesSlowly) {
  const plan::HealthVector whole(kOthersRanks);
  using Messages = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(chainOfRank1(Collective::kBroadcast, whole), Messages(1, 1));
  EXPECT_EQ(chainOfRank1(Collective::kBroadcast, slowOneWay(0.25, 1)), Messages(0, 1));
  EXPECT_EQ(chainOfRank1(Collective::kReduce, whole), Messages(1, 1));
  EXPECT_EQ(chainOfRank1(Collective::kReduce, slowOneWay(1, 0.25)), Messages(1, 0));
  // The other direction it has to use.
  EXPECT_EQ(chainOfRank1(Collective::kBroadcast, slowOneWay(1, 0.25)), Messages(1, 1));
}

TEST(PlannedOthersTest, OfAllAlgorithmsOptccAloneLeavesEqualPortsToARing) {
  PlanSettings settings;
  settings.link = {.latency = 240e-6, .perMessage = 20e-6, .bandwidth = 47e6};
  const auto usedFor = [&](const std::string& algorithm, const plan::HealthVector& health) {
    settings.algorithm = algorithm;
    const auto planned = planProgram(settings, health, {.elements = 2 << 20}, {}, 1);
    EXPECT_TRUE(planned.ok());
    return planned->plan.algorithm;
  };
  const plan::HealthVector whole(kOthersRanks);
  EXPECT_EQ(usedFor("optcc", whole), "ring");
  EXPECT_EQ(usedFor("optcc", slowOneWay(0.5, 0.5)), "optcc");
  EXPECT_EQ(usedFor("optcc_r2", whole), "optcc_r2");
  // A candidate is planned as it is chosen.
  settings.algorithm = "optcc";
  const Choice choice = choiceOf({.algorithm = "optcc", .segments = 16});
  const auto planned = planProgram(settings, whole, {.elements = 2 << 20}, choice, 1);
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ(planned->plan.algorithm, "optcc");
}

TEST(PlannedOthersTest, RanksThatCallDifferentCollectivesAreTold) {
  runJob(
      3,
      [&](Communicator& comm) {
        std::vector<float> data(300, 1), other(300, 1);
        const auto work =
            comm.rank() == 1
                ? comm.broadcast(data.data(), data.data(), 300, DataType::kF32, 0)
                : comm.reduce(data.data(), other.data(), 300, DataType::kF32, ReduceOp::kSum, 0);
        const Status status = work->wait();
        EXPECT_FALSE(status.ok());
        EXPECT_NE(status.message().find("has the plan"), std::string::npos) << status.message();
      },
      [](CommunicatorOptions& options) {
        options.planned = true;
        options.algorithm = CommunicatorOptions::kAnyAlgorithm;
      });
}

}  // namespace
}  // namespace faultline::comm
