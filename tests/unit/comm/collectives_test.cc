#include <gtest/gtest.h>

#include <numeric>

#include "resilient_ccl/comm/collective_call.h"
#include "resilient_ccl/plan/health_feed.h"
#include "resilient_ccl/reduction/half.h"
#include "tests/unit/comm/thread_job.h"

namespace faultline::comm {
namespace {

using schedule::Collective;

constexpr std::int64_t kUntouched = -77;

/// Element i of what a rank gives: different everywhere.
std::int64_t given(int rank, std::int64_t i) { return (i + 1) * 100 + rank; }

std::vector<std::int64_t> sourceOf(int rank, std::int64_t count) {
  std::vector<std::int64_t> data(count);
  for (std::int64_t i = 0; i < count; ++i) data[i] = given(rank, i);
  return data;
}

std::int64_t sumOf(int ranks, std::int64_t i) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += given(rank, i);
  return sum;
}

void expectDone(const std::shared_ptr<Work>& work) {
  const Status status = work->wait();
  ASSERT_TRUE(status.ok()) << status.message();
}

/// Sizes that leave lanes, blocks and slices empty, uneven, and many.
class CollectivesTest : public ::testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
  /// With the usual algorithms, and planned for ports that are slow in one direction.
  void forEveryCount(const std::function<void(Communicator&, std::int64_t count)>& body) {
    auto feed = std::make_shared<plan::HealthFeed>();
    plan::HealthVector health(static_cast<std::size_t>(ranks()));
    health.front().send = plan::quantise(0.125);
    health.back().receive = plan::quantise(0.125);
    feed->set(health);
    for (const bool planned : {false, true}) {
      runJob(
          ranks(),
          [&](Communicator& comm) {
            for (const std::int64_t count : {0, 1, 3, 1000, 20'011}) body(comm, count);
            EXPECT_TRUE(comm.finish().ok());
          },
          [&](CommunicatorOptions& options) {
            options.sliceBytes = 8 << 10;
            options.planned = planned;
            options.health = feed;
          });
    }
  }
};

TEST_P(CollectivesTest, ReduceScatter) {
  forEveryCount([&](Communicator& comm, std::int64_t count) {
    const auto original = sourceOf(comm.rank(), count * ranks());
    auto source = original, inPlace = original;
    std::vector<std::int64_t> target(count, kUntouched);
    const auto works = {
        comm.reduceScatter(source.data(), target.data(), count, DataType::kI64, ReduceOp::kSum),
        comm.reduceScatter(inPlace.data(), inPlace.data() + comm.rank() * count, count,
                           DataType::kI64, ReduceOp::kSum)};
    for (const auto& work : works) expectDone(work);
    auto expected = original;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = comm.rank() * count + i;
      ASSERT_EQ(target[i], sumOf(ranks(), at));
      expected[at] = sumOf(ranks(), at);
    }
    EXPECT_EQ(source, original);
    EXPECT_EQ(inPlace, expected) << "the blocks of others are theirs";
  });
}

TEST_P(CollectivesTest, AllGather) {
  forEveryCount([&](Communicator& comm, std::int64_t count) {
    const auto original = sourceOf(comm.rank(), count);
    const auto source = sourceOf(comm.rank(), count);
    std::vector<std::int64_t> target(count * ranks(), kUntouched), inPlace = target, expected;
    std::ranges::copy(source, inPlace.begin() + comm.rank() * count);
    const auto works = {comm.allGather(source.data(), target.data(), count, DataType::kI64),
                        comm.allGather(inPlace.data() + comm.rank() * count, inPlace.data(), count,
                                       DataType::kI64)};
    for (const auto& work : works) expectDone(work);
    for (int rank = 0; rank < ranks(); ++rank) {
      for (std::int64_t i = 0; i < count; ++i) expected.push_back(given(rank, i));
    }
    EXPECT_EQ(target, expected);
    EXPECT_EQ(inPlace, expected);
  });
}

TEST_P(CollectivesTest, BroadcastFromEveryRoot) {
  forEveryCount([&](Communicator& comm, std::int64_t count) {
    for (int root = 0; root < ranks(); ++root) {
      const auto source = sourceOf(root, count);
      const bool isRoot = comm.rank() == root;
      std::vector<std::int64_t> target(count, kUntouched);
      auto inPlace = isRoot ? source : target;
      const auto works = {
          comm.broadcast(isRoot ? source.data() : nullptr, target.data(), count, DataType::kI64,
                         root),
          comm.broadcast(inPlace.data(), inPlace.data(), count, DataType::kI64, root)};
      for (const auto& work : works) expectDone(work);
      EXPECT_EQ(target, source);
      EXPECT_EQ(inPlace, source);
    }
  });
}

TEST_P(CollectivesTest, ReduceToEveryRoot) {
  forEveryCount([&](Communicator& comm, std::int64_t count) {
    for (int root = 0; root < ranks(); ++root) {
      const auto original = sourceOf(comm.rank(), count);
      auto source = original, inPlace = original;
      std::vector<std::int64_t> target(count, kUntouched), expected(count);
      for (std::int64_t i = 0; i < count; ++i) expected[i] = sumOf(ranks(), i);
      const bool isRoot = comm.rank() == root;
      const auto works = {
          comm.reduce(source.data(), isRoot ? target.data() : nullptr, count, DataType::kI64,
                      ReduceOp::kSum, root),
          comm.reduce(inPlace.data(), inPlace.data(), count, DataType::kI64, ReduceOp::kSum, root)};
      for (const auto& work : works) expectDone(work);
      EXPECT_EQ(source, original);
      EXPECT_EQ(inPlace, isRoot ? expected : original);
      if (isRoot) {
        EXPECT_EQ(target, expected);
      }
    }
  });
}

TEST_P(CollectivesTest, AllToAll) {
  forEveryCount([&](Communicator& comm, std::int64_t count) {
    const auto source = sourceOf(comm.rank(), count * ranks());
    std::vector<std::int64_t> target(count * ranks(), kUntouched), expected;
    expectDone(comm.allToAll(source.data(), target.data(), count, DataType::kI64));
    for (int rank = 0; rank < ranks(); ++rank) {
      for (std::int64_t i = 0; i < count; ++i) {
        expected.push_back(given(rank, comm.rank() * count + i));
      }
    }
    EXPECT_EQ(target, expected);
    EXPECT_EQ(source, sourceOf(comm.rank(), count * ranks()));
  });
}

TEST_P(CollectivesTest, SendRecvShiftsAlongTheRing) {
  forEveryCount([&](Communicator& comm, std::int64_t count) {
    const auto source = sourceOf(comm.rank(), count);
    std::vector<std::int64_t> target(count, kUntouched);
    expectDone(comm.sendRecv(source.data(), target.data(), count, DataType::kI64));
    EXPECT_EQ(target, sourceOf((comm.rank() + ranks() - 1) % ranks(), count));
  });
}

// As stages of a pipeline: activations forward, gradients back, collectives in between, and the
// receives posted in another order than the sends of the other ranks.
TEST_P(CollectivesTest, MessagesGoInTheOrderOfTheirPairAndPassCollectives) {
  forEveryCount([&](Communicator& comm, std::int64_t count) {
    constexpr int kMessages = 5;
    const int rank = comm.rank();
    std::vector<std::vector<std::int64_t>> got;
    std::vector<std::vector<std::int64_t>> sent;
    for (int i = 0; i < kMessages; ++i) sent.push_back(sourceOf(10 * rank + i, count + i));
    for (int i = 0; i < 2 * kMessages; ++i) got.emplace_back(count + i % kMessages, kUntouched);
    std::vector<std::shared_ptr<Work>> works;
    const auto receiveFrom = [&](int peer, int first) {
      for (int i = 0; i < kMessages; ++i) {
        works.push_back(comm.receive(got[first + i].data(), count + i, DataType::kI64, peer));
      }
    };
    const auto sendTo = [&](int peer) {
      for (int i = 0; i < kMessages; ++i) {
        works.push_back(comm.send(sent[i].data(), count + i, DataType::kI64, peer));
      }
    };
    const bool hasNext = rank + 1 < ranks(), hasPrevious = rank > 0;
    if (hasNext && rank % 2 == 0) receiveFrom(rank + 1, kMessages);
    if (hasPrevious) receiveFrom(rank - 1, 0);
    expectDone(comm.barrier());
    if (hasPrevious) sendTo(rank - 1);
    if (hasNext) sendTo(rank + 1);
    if (hasNext && rank % 2 != 0) receiveFrom(rank + 1, kMessages);
    for (const auto& work : works) expectDone(work);
    for (int i = 0; i < kMessages; ++i) {
      if (hasPrevious) {
        EXPECT_EQ(got[i], sourceOf(10 * (rank - 1) + i, count + i));
      }
      if (hasNext) {
        EXPECT_EQ(got[kMessages + i], sourceOf(10 * (rank + 1) + i, count + i));
      }
    }
  });
}

/// The sum of one element per rank, by arithmetic of its own.
template <typename T>
T reduced(const std::vector<T>& values, ReduceOp op) {
  T result = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        result = static_cast<T>(result + values[i]);
        break;
      case ReduceOp::kProd:
        result = static_cast<T>(result * values[i]);
        break;
      case ReduceOp::kMin:
        result = std::min(result, values[i]);
        break;
      case ReduceOp::kMax:
        result = std::max(result, values[i]);
        break;
    }
  }
  return op == ReduceOp::kAvg ? static_cast<T>(result / static_cast<T>(values.size())) : result;
}

template <typename T>
void reduceInAllWays(Communicator& comm, DataType type) {
  constexpr std::int64_t kCount = 5003;
  const int ranks = comm.size();
  // Small enough for products, and for sums in 8 bits.
  const auto value = [](int rank, std::int64_t i) { return static_cast<T>(1 + (i + rank) % 3); };
  for (const ReduceOp op : reduction::kAllReduceOps) {
    std::vector<T> source(kCount * ranks), scattered(kCount), reducedHere(kCount);
    for (std::int64_t i = 0; i < std::ssize(source); ++i) source[i] = value(comm.rank(), i);
    const int root = ranks - 1;
    const auto works = {comm.reduceScatter(source.data(), scattered.data(), kCount, type, op),
                        comm.reduce(source.data(), reducedHere.data(), kCount, type, op, root)};
    for (const auto& work : works) expectDone(work);
    const auto expected = [&](std::int64_t i) {
      std::vector<T> values;
      for (int rank = 0; rank < ranks; ++rank) values.push_back(value(rank, i));
      return reduced(values, op);
    };
    for (std::int64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(scattered[i], expected(comm.rank() * kCount + i))
          << nameOf(type) << ' ' << nameOf(op);
      if (comm.rank() == root) {
        ASSERT_EQ(reducedHere[i], expected(i)) << nameOf(type) << ' ' << nameOf(op);
      }
    }
  }
}

TEST_P(CollectivesTest, EveryTypeAndOperation) {
  runJob(
      ranks(),
      [](Communicator& comm) {
        reduceInAllWays<float>(comm, DataType::kF32);
        reduceInAllWays<double>(comm, DataType::kF64);
        reduceInAllWays<std::int8_t>(comm, DataType::kI8);
        reduceInAllWays<std::uint8_t>(comm, DataType::kU8);
        reduceInAllWays<std::int32_t>(comm, DataType::kI32);
        reduceInAllWays<std::uint32_t>(comm, DataType::kU32);
        reduceInAllWays<std::int64_t>(comm, DataType::kI64);
        reduceInAllWays<std::uint64_t>(comm, DataType::kU64);
        EXPECT_TRUE(comm.finish().ok());
      },
      [](CommunicatorOptions& options) { options.sliceBytes = 4 << 10; });
}

template <typename Half>
void averageHalves(Communicator& comm, DataType type) {
  constexpr std::int64_t kCount = 3001;
  const int ranks = comm.size();
  std::vector<Half> source(kCount * ranks), target(kCount);
  for (std::int64_t i = 0; i < std::ssize(source); ++i) {
    narrow(static_cast<float>(i % 7 + comm.rank()), source[i]);
  }
  expectDone(comm.reduceScatter(source.data(), target.data(), kCount, type, ReduceOp::kAvg));
  for (std::int64_t i = 0; i < kCount; ++i) {
    const std::int64_t at = comm.rank() * kCount + i;
    const std::int64_t exact = ranks * (at % 7) + ranks * (ranks - 1) / 2;
    const auto sum = static_cast<float>(exact);
    Half expected;
    narrow(sum / static_cast<float>(ranks), expected);
    ASSERT_EQ(target[i].bits, expected.bits) << nameOf(type);
  }
}

TEST_P(CollectivesTest, AveragesOfHalves) {
  runJob(ranks(), [](Communicator& comm) {
    averageHalves<reduction::F16>(comm, DataType::kF16);
    averageHalves<reduction::Bf16>(comm, DataType::kBf16);
    EXPECT_TRUE(comm.finish().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesTest, ::testing::Values(1, 2, 3, 4));

TEST(CollectivesErrorTest, ImpossibleCallsAreRefusedAndCountAsNotMade) {
  runJob(2, [](Communicator& comm) {
    constexpr std::int64_t kCount = 8;
    std::vector<float> data(2 * kCount);
    float* const p = data.data();
    const auto type = DataType::kF32;
    const auto op = ReduceOp::kSum;
    const std::vector<std::pair<const char*, std::shared_ptr<Work>>> wrong{
        {"count", comm.allReduce(p, p, -1, type, op)},
        {"size", comm.allGather(p, p, std::int64_t{1} << 60, type)},
        {"root below", comm.broadcast(p, p, kCount, type, -1)},
        {"root above", comm.reduce(p, p, kCount, type, op, 2)},
        {"no source", comm.allToAll(nullptr, p, kCount, type)},
        {"no target", comm.reduceScatter(p, nullptr, kCount, type, op)},
        {"overlap", comm.allReduce(p, p + 1, kCount, type, op)},
        {"exchange in place", comm.allToAll(p, p, kCount, type)},
        {"shift in place", comm.sendRecv(p, p, kCount, type)},
        {"the block of another",
         comm.reduceScatter(p, p + (1 - comm.rank()) * kCount, kCount, type, op)},
        {"to itself", comm.send(p, kCount, type, comm.rank())},
        {"to nobody", comm.send(p, kCount, type, 2)},
        {"from nobody", comm.receive(p, kCount, type, -1)},
        {"nothing received", comm.receive(nullptr, kCount, type, 1 - comm.rank())},
        {"less than nothing", comm.send(p, -1, type, 1 - comm.rank())},
        {"no such type", comm.allGather(p, p, kCount, static_cast<DataType>(10))},
        {"a message of no such type",
         comm.send(p, kCount, static_cast<DataType>(200), 1 - comm.rank())},
        {"no such operation", comm.reduceScatter(p, p, kCount, type, static_cast<ReduceOp>(5))},
    };
    for (const auto& [what, work] : wrong) {
      EXPECT_TRUE(work->test()) << what;
      EXPECT_EQ(work->wait().code(), Code::kInvalidArgument) << what;
    }
    std::ranges::fill(data, 1.0F);
    expectDone(comm.allReduce(p, p, kCount, type, op));
    EXPECT_EQ(data[0], 2);
    EXPECT_TRUE(comm.finish().ok());
  });
}

TEST(CollectivesErrorTest, WhatDoesNotCommuteCannotBeAskedFor) {
  float element = 0;
  const Status status = checkCall({.source = &element,
                                   .target = &element,
                                   .count = 1,
                                   .op = static_cast<ReduceOp>(reduction::kAllReduceOps.size())},
                                  0, 2);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("known: sum, prod, min, max, avg"), std::string::npos);
  EXPECT_NE(status.message().find("does not commute"), std::string::npos);
}

TEST(CollectivesErrorTest, WhatARootDoesNotNeedMayBeMissing) {
  const auto check = [](Collective collective, int rank) {
    float element = 0;
    const bool broadcasts = collective == Collective::kBroadcast;
    return checkCall({.collective = collective,
                      .source = broadcasts ? nullptr : &element,
                      .target = broadcasts ? &element : nullptr,
                      .count = 1,
                      .root = 1},
                     rank, 3);
  };
  for (const Collective collective : {Collective::kBroadcast, Collective::kReduce}) {
    EXPECT_TRUE(check(collective, 0).ok());
    EXPECT_FALSE(check(collective, 1).ok());
  }
}

}  // namespace
}  // namespace faultline::comm
