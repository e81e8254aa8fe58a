#include "resilient_ccl/comm/communicator.h"

#include <gtest/gtest.h>

#include <thread>

#include "resilient_ccl/reduction/half.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "tests/unit/comm/thread_job.h"

namespace faultline::comm {
namespace {

class CommunicatorTest : public ::testing::TestWithParam<int> {};

TEST_P(CommunicatorTest, AllReduceIsRightForEverySizeTypeAndOperation) {
  const int size = GetParam();
  runJob(size, [&](Communicator& comm) {
    for (const std::int64_t count : {0, 1, 3, 1000, 100'003}) {
      std::vector<std::int64_t> data(count);
      for (std::int64_t i = 0; i < count; ++i) data[i] = (i % 5) + comm.rank() + 1;
      std::vector<std::int64_t> sum(count, -1), product = data, smallest = data;
      std::vector<double> largest(data.begin(), data.end());
      // All four at once, as overlapped buckets are.
      auto works = {
          comm.allReduce(data.data(), sum.data(), count, DataType::kI64, ReduceOp::kSum),
          comm.allReduce(product.data(), product.data(), count, DataType::kI64, ReduceOp::kProd),
          comm.allReduce(smallest.data(), smallest.data(), count, DataType::kI64, ReduceOp::kMin),
          comm.allReduce(largest.data(), largest.data(), count, DataType::kF64, ReduceOp::kMax)};
      for (const auto& work : works) ASSERT_TRUE(work->wait().ok());
      for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t expectedSum = 0, expectedProduct = 1;
        for (int rank = 0; rank < size; ++rank) {
          expectedSum += (i % 5) + rank + 1;
          expectedProduct *= (i % 5) + rank + 1;
        }
        ASSERT_EQ(sum[i], expectedSum);
        ASSERT_EQ(product[i], expectedProduct);
        ASSERT_EQ(smallest[i], (i % 5) + 1);
        ASSERT_EQ(largest[i], (i % 5) + size);
      }
    }
    EXPECT_TRUE(comm.events().failovers.empty());
    EXPECT_TRUE(comm.finish().ok());
  });
}

/// What each rank sends in one AllReduce of `count` elements of 4 bytes, with two ranks on each of
/// two nodes, of which the second has lost half.
std::vector<double> sharesSent(const std::string& algorithm, std::int64_t count) {
  constexpr int kRanks = 4, kPerNode = 2;
  std::vector<double> sent(kRanks);
  runJob(
      kRanks,
      [&](Communicator& comm) {
        EXPECT_EQ(comm.ranksPerNode(), kPerNode);
        const auto one = comm.split(comm.rank() % kPerNode, 0);
        ASSERT_TRUE(one.ok());
        EXPECT_EQ((*one)->ranksPerNode(), 1) << "one of each node";
        std::vector<std::int32_t> data(count, comm.rank() + 1);
        const auto bytesSent = [&] {
          EXPECT_TRUE(comm.barrier()->wait().ok());
          return comm.events().counters.bytesSent;
        };
        const Bytes before = bytesSent();
        ASSERT_TRUE(comm.allReduce(data.data(), data.data(), count, DataType::kI32, ReduceOp::kSum)
                        ->wait()
                        .ok());
        sent[comm.rank()] = static_cast<double>(bytesSent() - before) / (4.0 * count);
        EXPECT_EQ(std::ranges::count(data, 1 + 2 + 3 + 4), count);
        ASSERT_TRUE((*one)
                        ->allReduce(data.data(), data.data(), count, DataType::kI32, ReduceOp::kSum)
                        ->wait()
                        .ok());
        EXPECT_EQ(std::ranges::count(data, 2 * (1 + 2 + 3 + 4)), count);
        EXPECT_TRUE(comm.finish().ok());
      },
      [&](CommunicatorOptions& options) {
        options.fabric.host = fmt::format("node {}", options.rank / kPerNode);
        options.algorithm = algorithm;
        options.bandwidths = schedule::PortBandwidths({1, 1, .5, .5});
      });
  return sent;
}

TEST(CommunicatorLayoutTest, SchedulesAreMadeForTheNodesAndPortsThatThereAre) {
  constexpr std::int64_t kCount = 1 << 18;
  constexpr double kSmall = 0.02;  // barriers, rounding
  // Among all ranks the slow ones own nothing: they send S, and the others 2 S.
  const std::vector<double> flat = sharesSent("optcc", kCount);
  for (const int rank : {0, 1}) EXPECT_NEAR(flat[rank], 2, kSmall);
  for (const int rank : {2, 3}) EXPECT_NEAR(flat[rank], 1, kSmall);
  // Half inside the node, half to the other, and half inside again.
  for (const double sent : sharesSent("optcc_server", kCount)) EXPECT_NEAR(sent, 1.5, kSmall);
}

TEST(CommunicatorLayoutTest, BandwidthsOfOtherThanAllRanksAreRefused) {
  CommunicatorOptions options;
  options.size = 2;
  options.bandwidths = schedule::PortBandwidths({1, 1, 1});
  EXPECT_EQ(Communicator::create(options).status().code(), Code::kInvalidArgument);
  options.bandwidths = {{1, 1}, std::vector<double>()};
  EXPECT_EQ(Communicator::create(options).status().code(), Code::kInvalidArgument);
}

TEST_P(CommunicatorTest, BarrierWaitsForTheLast) {
  std::atomic<int> arrived{0};
  const int size = GetParam();
  runJob(size, [&](Communicator& comm) {
    for (int round = 1; round <= 20; ++round) {
      arrived.fetch_add(1);
      ASSERT_TRUE(comm.barrier()->wait().ok());
      ASSERT_GE(arrived.load(), round * size);
    }
    EXPECT_TRUE(comm.finish().ok());
  });
}

// Slices far smaller than the pieces, by every algorithm.
TEST_P(CommunicatorTest, HalvesAndAveragesInManySlicesAreRight) {
  const int size = GetParam();
  for (const schedule::Algorithm& algorithm : schedule::algorithms()) {
    runJob(
        size,
        [&](Communicator& comm) {
          constexpr std::int64_t kCount = 20'001;
          using reduction::F16;
          std::vector<F16> source(kCount), sum(kCount), average(kCount);
          for (std::int64_t i = 0; i < kCount; ++i) {
            narrow(static_cast<float>(i % 7 + comm.rank()), source[i]);
          }
          const auto works = {
              comm.allReduce(source.data(), sum.data(), kCount, DataType::kF16, ReduceOp::kSum),
              comm.allReduce(source.data(), average.data(), kCount, DataType::kF16,
                             ReduceOp::kAvg)};
          for (const auto& work : works) ASSERT_TRUE(work->wait().ok());
          for (std::int64_t i = 0; i < kCount; ++i) {
            const std::int64_t exact = size * (i % 7) + size * (size - 1) / 2;
            const auto expected = static_cast<float>(exact);
            ASSERT_EQ(widen(sum[i]), expected);
            F16 quotient;
            narrow(expected / static_cast<float>(size), quotient);
            ASSERT_EQ(average[i].bits, quotient.bits);
          }
          EXPECT_TRUE(comm.finish().ok());
        },
        [&](CommunicatorOptions& options) {
          options.algorithm = algorithm.name;
          options.sliceBytes = 1000;
          options.window = 2;
        });
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CommunicatorTest, ::testing::Values(1, 2, 3, 4));

// Rank r of n: colors 0 1 0 1 ..., the highest rank first.
TEST(CommunicatorSplitTest, PartsReduceAmongThemselvesInTheOrderOfTheirKeys) {
  runJob(5, [](Communicator& comm) {
    const int color = comm.rank() % 2;
    auto part = comm.split(color, -comm.rank());
    ASSERT_TRUE(part.ok()) << part.status().message();
    const int size = color == 0 ? 3 : 2;
    EXPECT_EQ((*part)->size(), size);
    EXPECT_EQ((*part)->rank(), size - 1 - comm.rank() / 2);
    std::vector<std::int64_t> data(1000, 1 << comm.rank());
    ASSERT_TRUE((*part)
                    ->allReduce(data.data(), data.data(), 1000, DataType::kI64, ReduceOp::kSum)
                    ->wait()
                    .ok());
    EXPECT_EQ(data, std::vector<std::int64_t>(1000, color == 0 ? 1 + 4 + 16 : 2 + 8));
    EXPECT_TRUE((*part)->finish().ok());
    EXPECT_FALSE((*part)->barrier()->wait().ok());
    EXPECT_TRUE(comm.barrier()->wait().ok()) << "the first one goes on";
    EXPECT_TRUE(comm.finish().ok());
  });
}

TEST(CommunicatorSplitTest, TwoOfTheSameRanksWorkAtTheSameTimeFromTwoThreads) {
  runJob(3, [](Communicator& comm) {
    auto twin = comm.split(0, comm.rank());
    ASSERT_TRUE(twin.ok()) << twin.status().message();
    const auto reduceOften = [](Communicator& one, std::int64_t value) {
      for (int round = 0; round < 30; ++round) {
        std::vector<std::int64_t> data(5000, value + round);
        ASSERT_TRUE(one.allReduce(data.data(), data.data(), 5000, DataType::kI64, ReduceOp::kSum)
                        ->wait()
                        .ok());
        ASSERT_EQ(data, std::vector<std::int64_t>(5000, 3 * (value + round)));
      }
    };
    std::thread other([&] { reduceOften(**twin, 1'000'000); });
    reduceOften(comm, 7);
    other.join();
    EXPECT_TRUE((*twin)->finish().ok());
    EXPECT_TRUE(comm.finish().ok());
  });
}

TEST(CommunicatorSplitTest, WhoGivesNoColorIsInNoPart) {
  runJob(3, [](Communicator& comm) {
    std::vector<std::unique_ptr<Communicator>> parts;
    for (int round = 0; round < 3; ++round) {
      auto part = comm.split(comm.rank() == round ? Communicator::kNoColor : 4, 0);
      ASSERT_TRUE(part.ok());
      ASSERT_EQ(*part == nullptr, comm.rank() == round);
      if (*part) parts.push_back(std::move(*part));
    }
    for (auto& part : parts) EXPECT_TRUE(part->barrier()->wait().ok());
    EXPECT_TRUE(comm.finish().ok());
  });
}

TEST(CommunicatorSplitTest, AnAbortOfOneEndsAll) {
  runJob(3, [](Communicator& comm) {
    auto part = comm.split(0, 0);
    ASSERT_TRUE(part.ok());
    if (comm.rank() == 1) (*part)->abort("the loss is not a number");
    const Status status = comm.barrier()->wait();
    EXPECT_NE(status.message().find("not a number"), std::string::npos) << status.message();
  });
}

TEST(CommunicatorTelemetryTest, EveryChunkIsInTheTrace) {
  const std::uint16_t port = freePort();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([rank, port] {
      CommunicatorOptions options = optionsOf(rank, 2, port);
      options.telemetry = telemetry::Mode::kOn;
      auto comm = Communicator::create(options);
      ASSERT_TRUE(comm.ok()) << comm.status().message();
      std::vector<float> data(100'000);
      ASSERT_TRUE((*comm)
                      ->allReduce(data.data(), data.data(), 100'000, DataType::kF32, ReduceOp::kSum)
                      ->wait()
                      .ok());
      const telemetry::Trace trace = (*comm)->trace();
      EXPECT_TRUE((*comm)->finish().ok());
      std::int64_t arrived = 0, railsUp = 0;
      for (const telemetry::Event& event : trace.events) {
        EXPECT_EQ(event.peer, 1 - rank);
        EXPECT_GE(event.length, Duration::zero());
        if (event.kind == telemetry::EventKind::kChunkArrived) arrived += event.bytes;
        railsUp += event.kind == telemetry::EventKind::kRailUp;
      }
      EXPECT_EQ(arrived, 400'000);  // a ring of two: each half to be added, and as the sum
      EXPECT_EQ(railsUp, 2);
      EXPECT_EQ(trace.dropped, 0u);
    });
  }
  for (auto& thread : ranks) thread.join();
}

TEST(CommunicatorCountersTest, WhoHasWaitedFindsEverythingCounted) {
  runJob(2, [](Communicator& comm) {
    for (int round = 1; round <= 20; ++round) {
      std::vector<float> data(1000);
      ASSERT_TRUE(comm.allReduce(data.data(), data.data(), 1000, DataType::kF32, ReduceOp::kSum)
                      ->wait()
                      .ok());
      // A ring of two: each half comes once to be added and once as the sum.
      EXPECT_EQ(comm.events().counters.bytesArrived, round * 4000);
    }
    EXPECT_TRUE(comm.finish().ok());
  });
}

}  // namespace
}  // namespace faultline::comm
