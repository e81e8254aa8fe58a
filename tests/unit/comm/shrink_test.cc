#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <latch>
#include <thread>

#include "tests/unit/comm/thread_job.h"

namespace faultline::comm {
namespace {

Status reduceOnes(Communicator& comm) {
  std::vector<std::int64_t> data(10'000, 1);
  RETURN_IF_ERROR(
      comm.allReduce(data.data(), data.data(), std::ssize(data), DataType::kI64, ReduceOp::kSum)
          ->wait());
  for (const std::int64_t element : data) {
    if (element != comm.size())
      return errorf(Code::kInternal, "{} instead of {}", element, comm.size());
  }
  return okStatus();
}

/// A job of `size` ranks, each with its end in its own hands.
class ShrinkTest : public ::testing::Test {
 protected:
  using Life = std::function<void(std::unique_ptr<Communicator>)>;

  static void live(int size, const Life& life) {
    const std::uint16_t port = freePort();
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.emplace_back([&, rank] {
        auto comm = Communicator::create(optionsOf(rank, size, port));
        ASSERT_TRUE(comm.ok()) << comm.status().message();
        life(std::move(*comm));
      });
    }
    for (auto& thread : ranks) thread.join();
  }

  /// Works until that fails.
  static void workToTheEnd(Communicator& comm) {
    while (reduceOnes(comm).ok()) {
    }
  }
};

class WhoeverDies : public ShrinkTest, public ::testing::WithParamInterface<std::vector<int>> {};

// A rank "dies": its communicator is destroyed without a word, and its sockets with it.
TEST_P(WhoeverDies, TheOthersGoOnInTheirOrder) {
  constexpr int kSize = 4;
  const std::vector<int>& dead = GetParam();
  std::vector<int> survivors;
  for (int rank = 0; rank < kSize; ++rank) {
    if (!std::ranges::count(dead, rank)) survivors.push_back(rank);
  }
  std::barrier worked(kSize);  // nobody leaves before all have what the first call gives them
  live(kSize, [&](std::unique_ptr<Communicator> comm) {
    const int rank = comm->rank();
    ASSERT_TRUE(reduceOnes(*comm).ok());
    worked.arrive_and_wait();
    if (std::ranges::count(dead, rank)) return;
    workToTheEnd(*comm);
    auto shrunk = comm->shrink();
    ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
    comm.reset();
    EXPECT_EQ(shrunk->survivors, survivors);
    EXPECT_EQ(shrunk->survivors[shrunk->communicator->rank()], rank);
    for (int round = 0; round < 5; ++round) {
      const Status status = reduceOnes(*shrunk->communicator);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    EXPECT_TRUE(shrunk->communicator->finish().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, WhoeverDies,
                         ::testing::Values(std::vector{2}, std::vector{0}, std::vector{3},
                                           std::vector{0, 1}, std::vector{1, 3},
                                           std::vector{0, 1, 2}));

TEST_F(ShrinkTest, OneAfterTheOther) {
  std::barrier worked(4);
  live(4, [&](std::unique_ptr<Communicator> comm) {
    // Always the first of those that are left.
    while (comm->size() > 1) {
      worked.arrive_and_wait();
      if (comm->rank() == 0) return worked.arrive_and_drop();
      workToTheEnd(*comm);
      auto shrunk = comm->shrink();
      ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
      EXPECT_EQ(shrunk->communicator->size(), comm->size() - 1);
      comm = std::move(shrunk->communicator);
      ASSERT_TRUE(reduceOnes(*comm).ok());
    }
    EXPECT_TRUE(comm->finish().ok());
  });
}

TEST_F(ShrinkTest, WhoLeadsMayDieWhileTheOthersWaitAtItsDoor) {
  std::atomic<int> waiting{0};
  live(3, [&](std::unique_ptr<Communicator> comm) {
    if (comm->rank() == 0) {
      comm->abort("something is wrong");
      while (waiting < 2) std::this_thread::yield();
      std::this_thread::sleep_for(50ms);  // they are at its door, or not: both must be right
      return;
    }
    workToTheEnd(*comm);
    ++waiting;
    auto shrunk = comm->shrink();
    ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
    EXPECT_EQ(shrunk->survivors, (std::vector{1, 2}));
    EXPECT_TRUE(reduceOnes(*shrunk->communicator).ok());
    EXPECT_TRUE(shrunk->communicator->finish().ok());
  });
}

TEST_F(ShrinkTest, WithoutAFailureItRevokesAndAllGoOn) {
  live(3, [](std::unique_ptr<Communicator> comm) {
    ASSERT_TRUE(reduceOnes(*comm).ok());
    auto part = comm->split(0, 0);
    ASSERT_TRUE(part.ok());
    EXPECT_EQ((*part)->shrink().status().code(), Code::kInvalidArgument);
    if (comm->rank() != 1) workToTheEnd(*comm);  // ended by the call of rank 1
    auto shrunk = comm->shrink();
    ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
    EXPECT_EQ(shrunk->communicator->size(), 3);
    EXPECT_FALSE(reduceOnes(**part).ok()) << "what was split from the old one is over too";
    EXPECT_TRUE(reduceOnes(*shrunk->communicator).ok());
    EXPECT_TRUE(shrunk->communicator->finish().ok());
  });
}

TEST_F(ShrinkTest, WhoLivesAndDoesNotComeIsLeftOutByMoreThanHalf) {
  std::latch goneOn(3);
  live(4, [&](std::unique_ptr<Communicator> comm) {
    if (comm->rank() == 1) {
      comm->abort("rank 1 has had enough");
      goneOn.wait();
      const auto late = comm->shrink(100ms);
      EXPECT_EQ(late.status().code(), Code::kUnavailable);
      EXPECT_NE(late.status().message().find("rank(s) 1 are here"), std::string::npos)
          << late.status().message();
      return;
    }
    workToTheEnd(*comm);
    auto shrunk = comm->shrink(300ms);
    ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
    EXPECT_EQ(shrunk->survivors, (std::vector{0, 2, 3}));
    EXPECT_TRUE(reduceOnes(*shrunk->communicator).ok());
    goneOn.arrive_and_wait();
    // As long as the late one asks.
    std::this_thread::sleep_for(400ms);
    EXPECT_TRUE(reduceOnes(*shrunk->communicator).ok());
    EXPECT_TRUE(shrunk->communicator->finish().ok());
  });
}

TEST_F(ShrinkTest, HalfThatKnowsNothingOfTheOtherHalfDoesNotGoOn) {
  std::latch tried(2);
  live(4, [&](std::unique_ptr<Communicator> comm) {
    if (comm->rank() >= 2) {
      comm->abort("half of us leave");
      tried.wait();  // alive, and silent
      return;
    }
    workToTheEnd(*comm);
    const auto shrunk = comm->shrink(100ms);
    EXPECT_EQ(shrunk.status().code(), Code::kUnavailable);
    if (comm->rank() == 0) {
      EXPECT_NE(shrunk.status().message().find("rank(s) 2, 3 are silent"), std::string::npos)
          << shrunk.status().message();
    }
    tried.arrive_and_wait();
  });
}

TEST_F(ShrinkTest, AnErrorMayBeFollowedByAnotherAttempt) {
  std::latch failed(1);
  live(2, [&](std::unique_ptr<Communicator> comm) {
    comm->abort("once more, please");
    if (comm->rank() == 0) {
      EXPECT_FALSE(comm->shrink(50ms).ok()) << "one of two, and the other lives";
      failed.count_down();
    } else {
      failed.wait();
    }
    auto shrunk = comm->shrink();
    ASSERT_TRUE(shrunk.ok()) << shrunk.status().message();
    EXPECT_EQ(shrunk->survivors, (std::vector{0, 1}));
    EXPECT_TRUE(reduceOnes(*shrunk->communicator).ok());
    EXPECT_TRUE(shrunk->communicator->finish().ok());
  });
}

}  // namespace
}  // namespace faultline::comm
