#include "harness/workload/collective/job/collective_job.h"

#include <gtest/gtest.h>

#include "harness/scenario/workload_kind.h"
#include "tests/unit/comm/thread_job.h"

namespace faultline::workload {
namespace {

using schedule::Collective;

scenario::Workload sweepOf(Collective operation, scenario::Place place) {
  scenario::Workload workload;
  workload.kind = scenario::findWorkloadKind("collective");
  workload.iterations = 2;
  workload.warmupIterations = 1;
  workload.collective = {.operations = {operation},
                         .sizes = {1, 40'004},
                         .dtypes = {scenario::DataType::kF32, scenario::DataType::kI32},
                         .ops = {reduction::ReduceOp::kSum, reduction::ReduceOp::kAvg},
                         .place = place};
  return workload;
}

bool getsSomething(Collective operation, int rank) {
  return operation != Collective::kReduce || rank == 0;
}

class CollectiveJobTest : public ::testing::TestWithParam<Collective> {};

TEST_P(CollectiveJobTest, EveryCallIsCheckedAndACorruptElementSeen) {
  for (const auto place : {scenario::Place::kOut, scenario::Place::kBoth}) {
    comm::runJob(3, [&](comm::Communicator& communicator) {
      const scenario::Workload workload = sweepOf(GetParam(), place);
      const auto job = makeCollectiveJob(workload, communicator.rank(), communicator.size());
      const auto cells = cellsOf(workload.collective);
      EXPECT_EQ(job->warmups(), cells.size());
      ASSERT_EQ(job->iterations(), 2 * cells.size());
      for (std::uint64_t index = 0; index < job->iterations(); ++index) {
        const DataKey key{5, index};
        job->prepare({.index = index, .warmup = false}, key);
        if (place == scenario::Place::kOut) {
          EXPECT_EQ(job->check(key).wrong, job->check(key).checked) << "poison";
        }
        int starts = 0;
        const auto time = job->run(communicator, [&](TimePoint) { ++starts; });
        ASSERT_TRUE(time.ok()) << time.status().message();
        EXPECT_EQ(starts, 1);
        JobCheck check = job->check(key);
        EXPECT_EQ(check.wrong, 0) << index;
        const bool large = cells[index / 2].size > 1;
        EXPECT_EQ(check.checked > 0, getsSomething(GetParam(), communicator.rank()) &&
                                         countOf(cells[index / 2], 3) > 0);
        EXPECT_TRUE(!large || countOf(cells[index / 2], 3) > 0);
        if (check.checked == 0) continue;
        job->corruptResult(index);
        EXPECT_EQ(job->check(key).wrong, 1);
      }
      EXPECT_TRUE(communicator.finish().ok());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, CollectiveJobTest,
                         ::testing::ValuesIn(schedule::kAllCollectives), [](const auto& operation) {
                           return std::string(collectiveName(operation.param));
                         });

}  // namespace
}  // namespace faultline::workload
