#include "resilient_ccl/comm/communicator.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <latch>
#include <mutex>
#include <set>
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
        options.bandwidths = {.send = {1, 1, .5, .5}, .receive = {1, 1, .5, .5}};
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
  options.bandwidths = {.send = {1, 1, 1}, .receive = {1, 1, 1}};
  EXPECT_EQ(Communicator::create(options).status().code(), Code::kInvalidArgument);
  options.bandwidths = {.send = {1, 1}, .receive = {}};
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
            const auto expected = static_cast<float>(size * (i % 7) + size * (size - 1) / 2);
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

TEST(CommunicatorErrorTest, AbortOnOneRankIsAnErrorOnAll) {
  runJob(3, [&](Communicator& comm) {
    std::vector<float> data(1000);
    std::shared_ptr<Work> work;
    if (comm.rank() == 1) {
      comm.abort("rank 1's loss is not a number");
      work = comm.barrier();
    } else {
      work = comm.allReduce(data.data(), data.data(), 1000, DataType::kF32, ReduceOp::kSum);
    }
    const Status status = work->wait();
    EXPECT_EQ(status.code(), Code::kAborted);
    EXPECT_NE(status.message().find("not a number"), std::string::npos) << status.message();
  });
}

TEST(CommunicatorErrorTest, AProcessThatVanishesIsNamedOnAllOthers) {
  runJob(3, [&](Communicator& comm) {
    if (comm.rank() == 2) return;  // destroyed without goodbye
    std::vector<float> data(1000);
    const Status status =
        comm.allReduce(data.data(), data.data(), 1000, DataType::kF32, ReduceOp::kSum)->wait();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
  });
}

/// Ends all TCP connections of this process with `port`, as a firewall may.
int endConnectionsWith(std::uint16_t port) {
  int ended = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family == AF_INET && ntohs(peer.sin_port) == port) {
      ended += shutdown(fd, SHUT_RDWR) == 0;
    }
  }
  return ended;
}

TEST(CommunicatorErrorTest, ManagementConnectionsThatEndHarmNobody) {
  constexpr int kRanks = 3;
  std::uint16_t port = 0;
  std::mutex mutex;
  std::latch joined(kRanks), ended(1);
  runJob(
      kRanks,
      [&](Communicator& comm) {
        joined.arrive_and_wait();
        if (comm.rank() == 0) {
          EXPECT_EQ(endConnectionsWith(port), kRanks - 1);
          ended.count_down();
        }
        ended.wait();
        std::vector<std::int32_t> data(100'000);
        for (const TimePoint end = now() + 300ms;;) {
          std::ranges::fill(data, 1);
          const Status status = comm.allReduce(data.data(), data.data(), std::ssize(data),
                                               DataType::kI32, ReduceOp::kSum)
                                    ->wait();
          ASSERT_TRUE(status.ok()) << status.message();
          const bool last = now() >= end;  // all must agree on the last one
          std::int32_t votes = last;
          ASSERT_TRUE(
              comm.allReduce(&votes, &votes, 1, DataType::kI32, ReduceOp::kMax)->wait().ok());
          if (votes != 0) break;
        }
        const Status left = comm.finish();
        EXPECT_TRUE(left.ok()) << left.message();
      },
      [&](CommunicatorOptions& options) {
        const std::lock_guard lock(mutex);
        port = options.rendezvous.port;
      });
}

TEST(CommunicatorErrorTest, WhoTakesNoPartIsNamedOnAllRanks) {
  std::mutex mutex;
  std::set<std::string> said;
  std::latch waited(2);
  runJob(
      3,
      [&](Communicator& comm) {
        ASSERT_TRUE(comm.barrier()->wait().ok());
        if (comm.rank() == 1) waited.wait();  // a data loader that hangs
        const Status status = comm.barrier()->wait();
        if (comm.rank() != 1) waited.count_down();
        const std::lock_guard lock(mutex);
        said.emplace(status.message());
      },
      [](CommunicatorOptions& options) {
        options.collectiveTimeout = 500ms;
        options.fabric.link.giveUp = 400ms;  // has nothing to do with it
      });
  ASSERT_EQ(said.size(), 1u) << *said.begin() << " / " << *said.rbegin();
  EXPECT_NE(said.begin()->find("collective 1 of communicator 1 is not done within 500ms: rank(s) "
                               "1 have not called it, rank(s) 0, 2 wait"),
            std::string::npos)
      << *said.begin();
}

TEST(CommunicatorErrorTest, AMessageThatNobodySendsIsAnErrorToo) {
  std::latch waited(1);
  runJob(
      2,
      [&](Communicator& comm) {
        if (comm.rank() == 1) return waited.wait();
        float value = 0;
        const Status status = comm.receive(&value, 1, DataType::kF32, 1)->wait();
        EXPECT_NE(status.message().find("a message from rank 1 is not done"), std::string::npos)
            << status.message();
        waited.count_down();
      },
      [](CommunicatorOptions& options) { options.collectiveTimeout = 300ms; });
}

TEST(CommunicatorErrorTest, ASplitWhoseEndIsNotCalledByAllIsAnErrorToo) {
  std::latch waited(2);
  runJob(
      3,
      [&](Communicator& comm) {
        auto part = comm.split(0, 0);
        ASSERT_TRUE(part.ok());
        if (comm.rank() == 2) return waited.wait();
        const Status status = (*part)->finish();
        EXPECT_NE(status.message().find("rank(s) 2 have not called it"), std::string::npos)
            << status.message();
        waited.count_down();
      },
      [](CommunicatorOptions& options) { options.collectiveTimeout = 300ms; });
}

TEST(CommunicatorErrorTest, WhoDoesNotSayGoodbyeIsNamed) {
  std::latch waited(2);
  runJob(
      3,
      [&](Communicator& comm) {
        if (comm.rank() == 1) return waited.wait();
        const Status status = comm.finish();
        EXPECT_NE(status.message().find("rank(s) 1 did not say goodbye"), std::string::npos)
            << status.message();
        waited.count_down();
      },
      [](CommunicatorOptions& options) { options.setupTimeout = 2s; });
}

TEST(CommunicatorErrorTest, WaitingForEverAndAKeyThatEverybodyKnowsAreRefused) {
  CommunicatorOptions options = optionsOf(0, 2, freePort());
  options.setupTimeout = 100ms;
  options.collectiveTimeout = {};
  EXPECT_EQ(Communicator::create(options).status().code(), Code::kInvalidArgument);
  options.collectiveTimeout = 1s;
  options.fabric.jobKey = {};
  EXPECT_EQ(Communicator::create(options).status().code(), Code::kInvalidArgument);
  options.size = 1;  // there is nobody to hide it from
  EXPECT_TRUE(Communicator::create(options).ok());
}

TEST(CommunicatorErrorTest, WhateverSeveralRanksSayAtOnceAllReturnTheSame) {
  std::mutex mutex;
  std::set<std::string> said;
  for (int round = 0; round < 5; ++round) {
    runJob(4, [&](Communicator& comm) {
      if (comm.rank() != 2) comm.abort(fmt::format("nonsense on {}", comm.rank()));
      const std::string message(comm.barrier()->wait().message());
      const std::lock_guard lock(mutex);
      said.insert(message);
    });
    EXPECT_EQ(said.size(), 1u) << *said.begin() << " / " << *said.rbegin();
    said.clear();
  }
}

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

TEST(CommunicatorErrorTest, TheReasonOfAnAbortIsHeardAlthoughItsAuthorLeavesAtOnce) {
  for (int round = 0; round < 3; ++round) {
    runJob(2, [](Communicator& comm) {
      if (comm.rank() == 1) return comm.abort("the loss is not a number");
      const Status status = comm.barrier()->wait();
      EXPECT_NE(status.message().find("not a number"), std::string::npos) << status.message();
    });
  }
}

TEST(CommunicatorErrorTest, ACallAfterTheEndIsAnError) {
  runJob(2, [](Communicator& comm) {
    EXPECT_TRUE(comm.finish().ok());
    const auto work = comm.barrier();
    ASSERT_TRUE(work->test());
    EXPECT_FALSE(work->wait().ok());
  });
}

TEST(CommunicatorErrorTest, MissingRanksAreNamed) {
  CommunicatorOptions options = optionsOf(0, 3, freePort());
  options.setupTimeout = 100ms;
  const auto comm = Communicator::create(options);
  ASSERT_FALSE(comm.ok());
  EXPECT_NE(comm.status().message().find("rank(s) 1, 2"), std::string::npos)
      << comm.status().message();
}

TEST(CommunicatorErrorTest, ARankOfAnotherJobDoesNotJoin) {
  const std::uint16_t port = freePort();
  std::vector<Status> ends(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&ends, rank, port] {
      CommunicatorOptions options = optionsOf(rank, 2, port);
      options.fabric.jobKey = auth::JobKey::random();
      options.setupTimeout = 300ms;
      ends[rank] = Communicator::create(options).status();
    });
  }
  for (auto& thread : ranks) thread.join();
  EXPECT_NE(ends[0].message().find("rank(s) 1"), std::string::npos) << ends[0].message();
  EXPECT_FALSE(ends[1].ok());
}

TEST(CommunicatorErrorTest, SlicesThatCutAnElementAreRefused) {
  CommunicatorOptions options = optionsOf(0, 1, freePort());
  for (const Bytes slice : {0, 12, -8}) {
    options.sliceBytes = slice;
    EXPECT_EQ(Communicator::create(options).status().code(), Code::kInvalidArgument);
  }
  options.sliceBytes = 8;
  options.window = 0;
  EXPECT_EQ(Communicator::create(options).status().code(), Code::kInvalidArgument);
}

TEST(CommunicatorErrorTest, UnknownAlgorithmIsAnErrorOfTheCall) {
  const std::uint16_t port = freePort();
  CommunicatorOptions options = optionsOf(0, 1, port);
  options.algorithm = "no_such";
  auto comm = Communicator::create(options);
  ASSERT_TRUE(comm.ok());
  float value = 1;
  EXPECT_FALSE((*comm)->allReduce(&value, &value, 1, DataType::kF32, ReduceOp::kSum)->wait().ok());
}

}  // namespace
}  // namespace faultline::comm
