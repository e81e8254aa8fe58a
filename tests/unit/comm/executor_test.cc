#include "resilient_ccl/comm/executor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "resilient_ccl/reduction/half.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/ring_all_reduce.h"
#include "tests/support/fake_job.h"
#include "tests/support/star_schedule.h"

namespace faultline::comm {
namespace {

struct Posted {
  bool send;
  std::byte* place;
  Bytes length;
  std::uint64_t token;
};

/// One rank whose messages are done when the test says so.
class LonelyRank : public MessagePort, public ReducerClient {
 public:
  LonelyRank(const schedule::Schedule& schedule, int rank, Bytes sliceBytes, int window)
      : staging(sliceBytes), buffer(schedule.elements(), 1) {
    executor = std::make_unique<Executor>(Executor::Job{.program = Program::compile(schedule, rank),
                                                        .source = buffer.data(),
                                                        .target = buffer.data(),
                                                        .type = DataType::kI32,
                                                        .window = window},
                                          *this, reducer, staging, 3);
    executor->start();
  }
  void postSend(int, const channel::MessageKey&, const std::byte* data, Bytes length,
                std::uint64_t token) override {
    posted.push_back({true, const_cast<std::byte*>(data), length, token});
  }
  void postReceive(int, const channel::MessageKey&, std::byte* region, Bytes capacity,
                   std::uint64_t token) override {
    posted.push_back({false, region, capacity, token});
  }
  void reduced(std::uint64_t token) override { executor->reduced(token); }

  std::vector<Posted> take(bool sends) {
    std::vector<Posted> found;
    for (const Posted& one : posted) {
      if (one.send == sends) found.push_back(one);
    }
    std::erase_if(posted, [&](const Posted& one) { return one.send == sends; });
    return found;
  }
  /// Every element of the message is `value`.
  void arrive(const Posted& receive, std::int32_t value) {
    for (Bytes at = 0; at < receive.length; at += 4) std::memcpy(receive.place + at, &value, 4);
    executor->messageDone(receive.token);
  }

  StagingPool staging;
  PollingReducer reducer;
  std::vector<std::int32_t> buffer;
  std::unique_ptr<Executor> executor;
  std::vector<Posted> posted;
};

// Rank 0 of three: adds to chunk 2, and sends that on.
TEST(ExecutorTest, ASendFollowsAReductionThatIsStillRunning) {
  const auto ring = schedule::ringAllReduce(3, 3 * 40, 1);
  LonelyRank rank(*ring, 0, /*sliceBytes=*/16 * 4, /*window=*/16);  // 16 elements: 3 slices
  EXPECT_EQ(rank.take(true).size(), 3u) << "the first send needs nothing";
  std::vector<Posted> receives = rank.take(false);
  ASSERT_GE(receives.size(), 3u);
  rank.arrive(receives[1], 5);
  rank.reducer.poll(rank);
  std::vector<Posted> sends = rank.take(true);
  EXPECT_TRUE(sends.empty()) << "slices leave in order";
  rank.arrive(receives[0], 5);
  EXPECT_TRUE(rank.take(true).empty()) << "not reduced yet";
  rank.reducer.poll(rank);
  sends = rank.take(true);
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_EQ(sends[0].length, 64);
  EXPECT_EQ(*reinterpret_cast<std::int32_t*>(sends[1].place), 6);
}

// What is passed on is not overwritten before it has left, slice by slice.
TEST(ExecutorTest, APlaceIsNotGrantedWhileItIsStillSent) {
  using schedule::makeOp;
  using schedule::OpKind;
  schedule::RecordedSchedule passOn(3, 1, 32);
  passOn.at(0, 0) = {makeOp(OpKind::kRecv, 1, {0, 32}),
                     makeOp(OpKind::kSend, 2, {0, 32}, {{0, 0, 32}}),
                     makeOp(OpKind::kRecv, 2, {0, 32}, {{0, 1, 32}})};
  LonelyRank rank(passOn, 0, 16 * 4, /*window=*/8);
  std::vector<Posted> receives = rank.take(false);
  ASSERT_EQ(receives.size(), 2u) << "the second receive must wait for the send";
  rank.arrive(receives[1], 5);
  EXPECT_TRUE(rank.take(true).empty());
  rank.arrive(receives[0], 5);
  const std::vector<Posted> sends = rank.take(true);
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_TRUE(rank.take(false).empty());
  rank.executor->messageDone(sends[0].token);
  receives = rank.take(false);
  ASSERT_EQ(receives.size(), 1u) << "the other half is still being sent";
  EXPECT_EQ(receives[0].place, reinterpret_cast<std::byte*>(rank.buffer.data()));
}

TEST(ExecutorTest, AGrantComesBackWhenTheReductionIsDone) {
  const auto ring = schedule::ringAllReduce(3, 3 * 40, 1);
  LonelyRank rank(*ring, 0, 16 * 4, /*window=*/2);
  EXPECT_EQ(rank.take(true).size(), 2u);
  std::vector<Posted> receives = rank.take(false);
  ASSERT_EQ(receives.size(), 2u);
  rank.arrive(receives[0], 5);
  EXPECT_TRUE(rank.take(false).empty());
  rank.reducer.poll(rank);
  EXPECT_EQ(rank.take(false).size(), 1u);
  EXPECT_EQ(rank.staging.made(), 2u);
}

TEST(ExecutorTest, StagingIsBoundedByTheWindow) {
  constexpr std::int64_t kElements = 10'000;
  const auto ring = schedule::ringAllReduce(4, kElements, 2);
  for (const int window : {1, 3}) {
    FakeJob job(*ring, {.window = window, .sliceBytes = 64, .seed = 5},
                std::vector(4, std::vector<std::byte>(kElements * 4)));
    ASSERT_TRUE(job.run());
    EXPECT_LE(job.stagingBlocks(), 2u * window);  // two lanes
    EXPECT_GT(job.messages(), 4 * 2 * 3 * 70);
  }
}

// Rounded at each addition the sum would stay at 256.
TEST(ExecutorTest, AnOwnerAddsHalvesIn32BitsAndRoundsOnce) {
  constexpr int kRanks = 7;
  const auto star = starAllReduce(kRanks, 50);
  const auto optcc =
      schedule::makeSchedule("optcc", {.ranks = kRanks, .elements = 50, .segments = 2});
  ASSERT_TRUE(optcc.ok());
  using reduction::Bf16;
  Bf16 big, small, rounded;
  narrow(256.0F, big);
  narrow(0.75F, small);  // below half of the last place of 256
  std::vector<std::vector<std::byte>> inputs;
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::vector<Bf16> values(50, rank == 3 ? big : small);
    inputs.emplace_back(sizeof(Bf16) * 50);
    std::memcpy(inputs.back().data(), values.data(), inputs.back().size());
  }
  for (const schedule::Schedule* schedule : {star.get(), optcc->get()}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
      FakeJob job(*schedule, {.type = DataType::kBf16, .op = op, .sliceBytes = 8, .seed = 9},
                  inputs);
      ASSERT_TRUE(job.run());
      const float sum = 256.0F + 6 * 0.75F;
      narrow(op == ReduceOp::kAvg ? sum / kRanks : sum, rounded);
      for (int rank = 0; rank < kRanks; ++rank) {
        std::vector<Bf16> result(50);
        std::memcpy(result.data(), job.result(rank).data(), job.result(rank).size());
        for (const Bf16 one : result) ASSERT_EQ(widen(one), widen(rounded));
      }
    }
  }
}

TEST(ExecutorTest, NoElementsAndOneRankAreDoneAtOnce) {
  for (const auto& schedule :
       {schedule::ringAllReduce(3, 0, 2), schedule::ringAllReduce(1, 9, 2)}) {
    FakeJob job(*schedule, {.inPlace = false},
                std::vector(schedule->ranks(),
                            std::vector<std::byte>(schedule->elements() * 4, std::byte{3})));
    EXPECT_TRUE(job.run());
    EXPECT_EQ(job.messages(), 0);
    EXPECT_EQ(job.result(0), job.input(0));
  }
}

}  // namespace
}  // namespace faultline::comm
