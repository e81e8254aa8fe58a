#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "harness/workload/training/job/training_job.h"

// Iterations of a job of threads over loopback.

#include "tests/support/free_port.h"

namespace faultline::workload {
namespace {

constexpr std::uint32_t kLoopback = 0x7f000001;
constexpr int kRanks = 3;

void runJob(const std::function<void(comm::Communicator&)>& body) {
  const std::uint16_t port = freePort();
  const auth::JobKey key = auth::JobKey::random();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      comm::CommunicatorOptions options;
      options.rank = rank;
      options.size = kRanks;
      options.rendezvous = {kLoopback, port};
      options.fabric.nics.assign(2, {.device = "", .address = kLoopback});
      options.fabric.managementAddress = kLoopback;
      options.fabric.jobKey = key;
      auto communicator = comm::Communicator::create(options);
      ASSERT_TRUE(communicator.ok()) << communicator.status().message();
      body(**communicator);
    });
  }
  for (auto& thread : ranks) thread.join();
}

TEST(TrainIterationTest, EveryBucketIsReducedAfterTheComputation) {
  for (const bool burn : {false, true}) {
    scenario::Workload workload;
    workload.compute = {.duration = 5ms, .burn = burn};
    workload.gradient = {.size = 400'004, .buckets = 3};
    runJob([&](comm::Communicator& communicator) {
      Gradient gradient(workload.gradient, communicator.rank(), kRanks);
      for (std::uint64_t iteration = 0; iteration < 3; ++iteration) {
        gradient.prepare({1, iteration});
        int starts = 0;
        const auto time =
            trainIteration(workload, gradient, communicator, [&](TimePoint) { ++starts; });
        ASSERT_TRUE(time.ok()) << time.status().message();
        EXPECT_EQ(starts, 1);
        EXPECT_GE(time->end - time->start, workload.compute.duration);
        EXPECT_EQ(gradient.check({1, iteration}).wrong, 0);
        EXPECT_EQ(gradient.check({1, iteration}).checked, 100'001);
      }
      EXPECT_TRUE(communicator.finish().ok());
    });
  }
}

TEST(TrainIterationTest, AnAbortEndsItWithTheReason) {
  const scenario::Workload workload;
  runJob([&](comm::Communicator& communicator) {
    Gradient gradient(workload.gradient, communicator.rank(), kRanks);
    gradient.prepare({1, 0});
    if (communicator.rank() == 1) {
      communicator.abort("the sky fell");
      return;
    }
    const auto time = trainIteration(workload, gradient, communicator, [](TimePoint) {});
    ASSERT_FALSE(time.ok());
    EXPECT_NE(time.status().message().find("sky"), std::string::npos) << time.status().message();
  });
}

}  // namespace
}  // namespace faultline::workload
