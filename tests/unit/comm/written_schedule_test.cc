#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>

#include "resilient_ccl/schedule/algorithms.h"
#include "tests/unit/comm/thread_job.h"

// Calls that follow a schedule that somebody wrote down.

namespace faultline::comm {
namespace {

using schedule::Collective;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRanks = 4;
constexpr std::int64_t kChunks = 8;

/// A tree, which nobody takes unless told so; notes for which sizes it is asked.
class Written final : public schedule::ScheduleSource {
 public:
  explicit Written(std::uint64_t digest = 1) : digest_(digest) {}
  std::string_view algorithm() const override { return "mine"; }
  Collective collective() const override { return Collective::kAllReduce; }
  int root() const override { return 0; }
  int ranks() const override { return kRanks; }
  std::int64_t chunks() const override { return kChunks; }
  std::uint64_t digest() const override { return digest_; }
  Result<std::unique_ptr<schedule::Schedule>> make(std::int64_t elements) const override {
    {
      const std::lock_guard lock(mutex_);
      asked_.insert(elements);
    }
    return schedule::makeSchedule("tree", {.ranks = kRanks, .elements = elements, .segments = 2});
  }
  std::set<std::int64_t> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::uint64_t digest_;
  mutable std::mutex mutex_;
  mutable std::set<std::int64_t> asked_;
};

TEST(WrittenScheduleTest, CallsOfItsCollectiveAndRanksFollowIt) {
  const auto written = std::make_shared<const Written>();
  runJob(
      kRanks,
      [](Communicator& comm) {
        for (const std::int64_t count : {std::int64_t{1000}, kChunks, kChunks - 1}) {
          std::vector<std::int32_t> source(count, comm.rank() + 1);
          std::vector<std::int32_t> target(count);
          ASSERT_TRUE(
              comm.allReduce(source.data(), target.data(), count, DataType::kI32, ReduceOp::kSum)
                  ->wait()
                  .ok());
          EXPECT_THAT(target, ::testing::Each(1 + 2 + 3 + 4)) << count;
        }
        std::vector<std::int32_t> average(16, comm.rank());
        ASSERT_TRUE(
            comm.allReduce(average.data(), average.data(), 16, DataType::kI32, ReduceOp::kAvg)
                ->wait()
                .ok());
        EXPECT_THAT(average, ::testing::Each(1));  // 6 over 4, rounded down
        ASSERT_TRUE(comm.barrier()->wait().ok());
        auto half = comm.split(comm.rank() % 2, 0);
        ASSERT_TRUE(half.ok());
        std::vector<std::int32_t> few(24, 1);
        ASSERT_TRUE((*half)
                        ->allReduce(few.data(), few.data(), 24, DataType::kI32, ReduceOp::kSum)
                        ->wait()
                        .ok());
        EXPECT_THAT(few, ::testing::Each(2));
        half->reset();
        EXPECT_TRUE(comm.finish().ok()) << "nobody leaves before the others are done";
      },
      [&](CommunicatorOptions& options) { options.written = written; });
  // The split gathers what ranks wish, three words of each; its own ranks are not four.
  EXPECT_THAT(written->asked(), ElementsAre(kChunks, 3 * kRanks, 16, 1000));
}

TEST(WrittenScheduleTest, RanksWithDifferentSchedulesDoNotBegin) {
  const std::uint16_t port = freePort();
  std::vector<std::thread> ranks;
  std::atomic<int> refused = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      CommunicatorOptions options = optionsOf(rank, kRanks, port);
      options.written = std::make_shared<const Written>(rank == 2 ? 7 : 1);
      const auto comm = Communicator::create(options);
      EXPECT_FALSE(comm.ok());
      if (comm.ok()) return;
      EXPECT_THAT(comm.status().message(), HasSubstr("rank 2 has another schedule than rank 0"));
      ++refused;
    });
  }
  for (auto& thread : ranks) thread.join();
  EXPECT_EQ(refused, kRanks);
}

TEST(WrittenScheduleTest, NothingIsLeftToPlan) {
  CommunicatorOptions options = optionsOf(0, 1, freePort());
  options.written = std::make_shared<const Written>();
  options.planned = true;
  const auto comm = Communicator::create(options);
  ASSERT_FALSE(comm.ok());
  EXPECT_THAT(comm.status().message(), HasSubstr("leaves nothing to plan"));
}

}  // namespace
}  // namespace faultline::comm
