#include "harness/control/job_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/scenario/workload_kind.h"

namespace faultline::run {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

scenario::Scenario training(int nodes, int ranksPerNode, int rails) {
  scenario::Scenario scenario;
  scenario.cluster = {.nodes = nodes, .ranksPerNode = ranksPerNode, .rails = rails};
  return scenario;
}

/// As a usual machine has it.
Capacity machine() {
  Capacity capacity;
  capacity.memory = Room{16.0 * (1 << 30), "MemAvailable of /proc/meminfo"};
  capacity.threads = Room{100'000, "kernel.threads-max"};
  capacity.descriptors = Room{1024, "ulimit -n"};
  capacity.files = Room{1e6, "fs.file-max"};
  capacity.networkNamespaces = Room{60'000, "user.max_net_namespaces"};
  capacity.processors = 2;
  return capacity;
}

TEST(JobEstimateTest, CountsWhatFollowsFromTheCluster) {
  const JobEstimate estimate = estimateJob(training(4, 2, 3));
  EXPECT_EQ(estimate.processes, 1 + 4 + 8) << "with an agent in each node";
  EXPECT_EQ(estimate.connections, (8 * 6 / 2) * 3) << "pairs of different nodes, and rails";
  EXPECT_EQ(estimate.networkNamespaces, 5);
  EXPECT_EQ(estimate.processNamespaces, 0);
  EXPECT_FALSE(estimate.foreign);
  EXPECT_THAT(inWords(estimate),
              AllOf(HasSubstr("13 processes"), HasSubstr("72 connections"), HasSubstr("memory")));
}

TEST(JobEstimateTest, TheDataOfEachRankCounts) {
  scenario::Scenario small = training(4, 1, 2), large = small;
  large.workload.gradient.size = small.workload.gradient.size + (1 << 30);
  const Bytes more = estimateJob(large).memory - estimateJob(small).memory;
  EXPECT_GE(more, Bytes{4} * 3 * (1 << 30));
  scenario::Scenario sweep = training(4, 1, 2);
  sweep.workload.kind = scenario::findWorkloadKind("collective");
  sweep.workload.collective.sizes = {1 << 20, 1 << 30};
  EXPECT_GE(estimateJob(sweep).memory, Bytes{4} * 2 * (1 << 30));
}

TEST(JobEstimateTest, ProgramsThatAreNotOursHaveGuards) {
  scenario::Scenario command = training(4, 2, 2);
  command.workload.kind = scenario::findWorkloadKind("command");
  const JobEstimate estimate = estimateJob(command);
  EXPECT_EQ(estimate.processes, 1 + 4 + 4 + 8);
  EXPECT_EQ(estimate.processNamespaces, 4);
  EXPECT_EQ(estimate.connections, 0);
  EXPECT_THAT(inWords(estimate), HasSubstr("whatever the programs take"));
}

TEST(JobEstimateTest, GuestsTakeTheirMemory) {
  scenario::Scenario guests = training(4, 1, 2);
  guests.cluster.kind = site::findKind("rdma_vm");
  EXPECT_GE(estimateJob(guests).memory, Bytes{4} * (512 << 20));
}

TEST(JobEstimateTest, WhatFitsIsNotRefused) {
  for (const auto& [nodes, ranks, rails] :
       {std::tuple{4, 1, 2}, std::tuple{8, 1, 8}, std::tuple{8, 4, 2}, std::tuple{32, 1, 4}}) {
    EXPECT_THAT(shortages(estimateJob(training(nodes, ranks, rails)), machine()), IsEmpty())
        << nodes << " x " << ranks << " x " << rails;
  }
}

TEST(JobEstimateTest, WhatTheMachineCannotHoldIsNamedWithItsLimit) {
  const auto missing = shortages(estimateJob(training(64, 64, 16)), machine());
  EXPECT_THAT(missing, Contains(AllOf(HasSubstr("GiB of memory"), HasSubstr("MemAvailable"),
                                      HasSubstr("16.0 GiB"))));
  EXPECT_THAT(missing,
              Contains(AllOf(HasSubstr("descriptors"), HasSubstr("ulimit -n leaves 1024"))));
  EXPECT_THAT(missing, Contains(HasSubstr("fs.file-max")));
  Capacity few = machine();
  few.threads = Room{10, "pids.max of /sys/fs/cgroup/a"};
  few.networkNamespaces = Room{3, "user.max_net_namespaces"};
  EXPECT_THAT(shortages(estimateJob(training(4, 1, 2)), few),
              ElementsAre(HasSubstr("pids.max of /sys/fs/cgroup/a leaves 10"),
                          HasSubstr("user.max_net_namespaces leaves 3")));
  EXPECT_THAT(shortages(estimateJob(training(64, 64, 16)), Capacity{}), IsEmpty())
      << "what is not known refuses nothing";
}

TEST(JobEstimateTest, RatesThatTheProcessorsCannotMoveAreWarnedOf) {
  scenario::Scenario fast = training(64, 8, 8);
  fast.cluster.railRate = 100'000'000'000;
  EXPECT_THAT(tooFast(fast, machine()),
              ElementsAre(AllOf(HasSubstr("51200 Gbit/s"), HasSubstr("2 processor(s)"))));
  EXPECT_THAT(tooFast(training(4, 1, 2), machine()), IsEmpty());
  fast.cluster.railRate = 0;
  EXPECT_THAT(tooFast(fast, machine()), IsEmpty()) << "not shaped";
}

}  // namespace
}  // namespace faultline::run
