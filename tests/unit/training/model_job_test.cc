#include "harness/workload/training/job/model_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <numeric>
#include <set>

#include "harness/model/training_program.h"
#include "tests/unit/comm/thread_job.h"

// Iterations of models by threads over loopback.

namespace faultline::workload {
namespace {

scenario::Workload modelOf(const model::Parallel& parallel,
                           scenario::DataKind data = scenario::DataKind::kIntegers) {
  scenario::Workload workload;
  workload.gradient.data = data;
  model::Training& training = workload.model.emplace();
  training.model = {.name = "small",
                    .family = model::Family::kGpt,
                    .layers = 4,
                    .hidden = 64,
                    .heads = 8,
                    .kvHeads = 8,
                    .ffn = 256,
                    .vocabulary = 1000,
                    .sequence = 32,
                    .experts = parallel.expert > 1 ? 4 : 1,
                    .activeExperts = parallel.expert > 1 ? 2 : 1};
  // An iteration computes for a millisecond or so.
  training.device = {.name = "slow", .gflops = 100, .efficiency = 1, .memory = Bytes{1} << 40};
  training.parallel = parallel;
  training.microBatches = 2;
  training.sequence = 32;
  training.buckets = 2;
  EXPECT_THAT(model::mistakesOf(training, parallel.ranks()), ::testing::IsEmpty());
  return workload;
}

using Body = std::function<void(Job&, comm::Communicator&)>;
/// `body` on every rank, with its job, which has joined.
void onEveryRank(const scenario::Workload& workload, const Body& body) {
  comm::runJob(workload.model->parallel.ranks(), [&](comm::Communicator& communicator) {
    const auto job = makeModelJob(workload, communicator.rank(), communicator.size());
    const Status joined = job->join(communicator);
    ASSERT_TRUE(joined.ok()) << joined.message();
    body(*job, communicator);
    EXPECT_TRUE(communicator.finish().ok());
  });
}

IterationTime iterate(Job& job, comm::Communicator& communicator, const DataKey& key) {
  job.prepare({.index = key.iteration, .warmup = false}, key);
  const auto time = job.run(communicator, [](TimePoint) {});
  EXPECT_TRUE(time.ok()) << time.status().message();
  return time.ok() ? *time : IterationTime{};
}

class ModelJobTest : public ::testing::TestWithParam<model::Parallel> {};

TEST_P(ModelJobTest, EveryResultIsCheckedAndACorruptElementSeen) {
  const scenario::Workload workload = modelOf(GetParam());
  const Duration compute = model::computeTime(*workload.model);
  onEveryRank(workload, [&](Job& job, comm::Communicator& communicator) {
    std::int64_t elements = 0;
    for (const model::Call& call : model::programOf(*workload.model, communicator.rank()).calls) {
      if (call.operation == model::Operation::kSend) continue;
      elements += call.operation == model::Operation::kReduceScatter ? call.count : call.elements();
    }
    for (std::uint64_t index = 0; index < 2; ++index) {
      const DataKey key{5, index};
      job.prepare({.index = index, .warmup = false}, key);
      EXPECT_EQ(job.check(key).wrong, elements) << "poison";
      const IterationTime time = iterate(job, communicator, key);
      const JobCheck check = job.check(key);
      EXPECT_EQ(check.wrong, 0);
      EXPECT_EQ(check.checked, elements);
      EXPECT_EQ(job.check({5, index + 1}).checked, elements);
      EXPECT_GT(job.check({5, index + 1}).wrong, elements / 2) << "of another iteration";
      const Duration exposed =
          std::accumulate(time.exposed.begin(), time.exposed.end(), Duration::zero());
      EXPECT_GT(exposed, Duration::zero());
      const bool slowest = workload.model->parallel.pipeline == 1;
      if (slowest) {
        EXPECT_NEAR((time.end - time.start - exposed).count(), compute.count(), 1000);
      }
      job.corruptResult(index);
      EXPECT_EQ(job.check(key).wrong, 1);
    }
  });
}

TEST_P(ModelJobTest, RandomDataHaveTheSameDigestsAgain) {
  const scenario::Workload workload = modelOf(GetParam(), scenario::DataKind::kRandom);
  onEveryRank(workload, [&](Job& job, comm::Communicator& communicator) {
    const auto digest = [&](std::uint64_t iteration) {
      iterate(job, communicator, {5, iteration});
      const JobCheck check = job.check({5, iteration});
      EXPECT_EQ(check.wrong, 0) << "poison";
      return check.digest;
    };
    const std::string first = digest(0);
    EXPECT_NE(digest(1), first);
    EXPECT_EQ(digest(0), first);
    job.prepare({}, {5, 0});
    EXPECT_GT(job.check({5, 0}).wrong, 0) << "poison";
  });
}

TEST_P(ModelJobTest, TheStateGoesOnWhereItWasSaved) {
  onEveryRank(modelOf(GetParam()), [](Job& job, comm::Communicator& communicator) {
    const auto step = [&](std::uint64_t iteration) {
      iterate(job, communicator, {5, iteration});
      job.step();
    };
    step(0);
    const std::vector<std::byte> saved(job.state().begin(), job.state().end());
    step(1);
    const std::vector<std::byte> later(job.state().begin(), job.state().end());
    EXPECT_EQ(saved == later, saved.empty());
    ASSERT_TRUE(job.restoreState(saved));
    step(1);
    EXPECT_TRUE(std::ranges::equal(job.state(), later));
    EXPECT_FALSE(job.restoreState(std::vector<std::byte>(saved.size() + 1)));
  });
}

INSTANTIATE_TEST_SUITE_P(Plans, ModelJobTest,
                         ::testing::Values(model::Parallel{.data = 3},
                                           model::Parallel{.data = 2, .zero = 1},
                                           model::Parallel{.data = 2, .zero = 2},
                                           model::Parallel{.data = 2, .zero = 3},
                                           model::Parallel{.tensor = 2, .pipeline = 2},
                                           model::Parallel{.data = 2, .pipeline = 2, .zero = 1},
                                           model::Parallel{.data = 2, .expert = 2, .zero = 3}));

TEST(ModelJobStateTest, BucketsHaveDataAndPlacesOfTheirOwn) {
  onEveryRank(modelOf({.data = 2}), [](Job& job, comm::Communicator& communicator) {
    iterate(job, communicator, {5, 0});
    job.step();
    const auto half = job.state().size() / 2;
    const auto first = job.state().first(half), second = job.state().subspan(half, half);
    EXPECT_FALSE(std::ranges::equal(first, second));
    for (const auto& bucket : {first, second}) {
      EXPECT_TRUE(std::ranges::any_of(bucket, [](std::byte byte) { return byte != std::byte{}; }));
    }
  });
}

TEST(ModelJobEndTest, OnlyCopiesGoOnWithoutOthers) {
  const scenario::Workload copies = modelOf({.data = 3});
  const int left[] = {0, 2};
  EXPECT_TRUE(makeModelJob(copies, 0, 3)->goOnWith(left).ok());
  for (const model::Parallel& parallel :
       {model::Parallel{.data = 3, .zero = 1}, model::Parallel{.tensor = 2, .pipeline = 2}}) {
    const auto job = makeModelJob(modelOf(parallel), 0, parallel.ranks());
    EXPECT_EQ(job->goOnWith(left).code(), Code::kUnsupported);
  }
}

TEST(ModelJobEndTest, ResultsAreThoseOfTheRanksThatAreLeft) {
  const scenario::Workload workload = modelOf({.data = 3});
  comm::runJob(2, [&](comm::Communicator& communicator) {
    const int left[] = {0, 2};
    const auto job = makeModelJob(workload, left[communicator.rank()], 3);
    ASSERT_TRUE(job->goOnWith(left).ok());
    iterate(*job, communicator, {5, 0});
    EXPECT_EQ(job->check({5, 0}).wrong, 0);
    EXPECT_GT(job->check({5, 0}).checked, 0);
    EXPECT_TRUE(communicator.finish().ok());
  });
}

TEST(ModelJobEndTest, AnAbortEndsItWithTheReason) {
  const scenario::Workload workload = modelOf({.tensor = 2});
  comm::runJob(2, [&](comm::Communicator& communicator) {
    const auto job = makeModelJob(workload, communicator.rank(), 2);
    ASSERT_TRUE(job->join(communicator).ok());
    job->prepare({}, {1, 0});
    if (communicator.rank() == 1) {
      communicator.abort("the sky fell");
      return;
    }
    const auto time = job->run(communicator, [](TimePoint) {});
    ASSERT_FALSE(time.ok());
    EXPECT_THAT(time.status().message(), ::testing::HasSubstr("sky"));
  });
}

}  // namespace
}  // namespace faultline::workload
