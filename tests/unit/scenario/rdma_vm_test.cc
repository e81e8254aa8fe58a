#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/scenario/fault_list.h"
#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"

namespace faultline::scenario {
namespace {

using ::testing::HasSubstr;

/// A scenario whose `faults` start in line 7.
std::string text(const std::string& cluster, const std::string& strategies,
                 const std::string& faults, const std::string& kind = "command") {
  return "version: 1\n"
         "name: rdma\n"
         "cluster: " +
         cluster +
         "\n"
         "workload: {kind: " +
         kind +
         (kind == "command" ? ", command: {run: [ib_write_bw], progress: p, env: {LD_PRELOAD: "
                              "'{verbs_shim}'}}}\n"
                            : "}\n") +
         "strategies: " + strategies +
         "\n"
         "faults:\n" +
         faults;
}
constexpr const char* kTwoGuests = "{kind: rdma_vm, nodes: 2, rails: 2}";
constexpr const char* kForPrograms = "[fault_free, unprotected]";
constexpr const char* kPull =
    "  - {kind: port_down, target: {node: 1, rail: 0}, at: 1s, until: end}\n";

std::string problems(const std::string& scenario) {
  std::string lines;
  for (const Mistake& mistake : readScenario(scenario, "f.yaml").mistakes) {
    lines += mistake.toString() + "\n";
  }
  return lines;
}

TEST(RdmaVm, IsRead) {
  const auto read = readScenario(text(kTwoGuests, kForPrograms, kPull), "f.yaml");
  ASSERT_TRUE(read.ok()) << problems(text(kTwoGuests, kForPrograms, kPull));
  EXPECT_EQ(read.scenario->cluster.kind->name, "rdma_vm");
  EXPECT_TRUE(readScenario(text(kTwoGuests, kForPrograms,
                                "  - {kind: blackhole, target: {node: 0, rail: 1}, at: 1s, "
                                "duration: 1s}\n"),
                           "f.yaml")
                  .ok());
}

TEST(RdmaVm, WhatItCannotBeIsAMistakeWithItsPlace) {
  EXPECT_THAT(
      problems(text("{kind: rdma_vm, nodes: 2, rails: 2, rail_rate: 1Gbit}", kForPrograms, kPull)),
      HasSubstr("f.yaml:3:"));
  EXPECT_THAT(
      problems(text("{kind: rdma_vm, nodes: 2, rails: 2, rail_rate: 1Gbit}", kForPrograms, kPull)),
      HasSubstr("rail_rate"));
  EXPECT_THAT(problems(text("{kind: rdma_vm, nodes: 2, rails: 2, congestion_control: cubic}",
                            kForPrograms, kPull)),
              HasSubstr("their own kernel's"));
  EXPECT_THAT(problems(text("{kind: rdma_vm, nodes: 9, rails: 2}", kForPrograms, kPull)),
              HasSubstr("has 8 at most"));
  EXPECT_THAT(problems(text("{kind: rdma_vm, nodes: 2, rails: 9}", kForPrograms, kPull)),
              HasSubstr("has 8 at most"));
  EXPECT_THAT(problems(text(kTwoGuests, "[fault_free, hot_repair]", kPull, "training")),
              HasSubstr("runs programs that are not ours"));
  EXPECT_THAT(problems(text(kTwoGuests, "[fault_free, nccl]", kPull)), HasSubstr("GPUs"));
}

TEST(RdmaVm, FaultsThatItCannotHaveAreMistakesWithTheirPlace) {
  const std::string loss = problems(
      text(kTwoGuests, kForPrograms,
           "  - {kind: loss, percent: 5%, target: {node: 1, rail: 0}, at: 1s, until: end}\n"));
  EXPECT_THAT(loss, HasSubstr("f.yaml:7:"));
  EXPECT_THAT(loss, HasSubstr("has only port_down, blackhole, qp_error,"));
  EXPECT_THAT(problems(text(kTwoGuests, kForPrograms,
                            "  - {kind: port_down, how: admin, target: {node: 1, rail: 0}, at: 1s, "
                            "until: end}\n")),
              HasSubstr("write 'carrier'"));
  EXPECT_THAT(problems(text(kTwoGuests, kForPrograms,
                            "  - {kind: port_down, target: {node: 1, network: management}, at: 1s, "
                            "until: end}\n")),
              HasSubstr("management network"));
  EXPECT_THAT(problems(text(kTwoGuests, kForPrograms,
                            "  - {kind: process_kill, target: {node: 1}, at: 1s, until: end}\n")),
              HasSubstr("process_kill: a cluster of kind rdma_vm has only"));
  EXPECT_THAT(problems(text(kTwoGuests, kForPrograms,
                            "  - {kind: qp_error, target: {rank: 2}, at: 1s, until: end}\n")),
              HasSubstr("the bench starts 2 processes"));
}

TEST(RdmaVm, FaultsOfQueuePairsCanBeThoseOfARank) {
  const auto read = readScenario(
      "version: 1\n"
      "name: rdma\n"
      "cluster: {kind: rdma_vm, nodes: 2, rails: 2}\n"
      "workload: {kind: command, command: {run: [ib_write_bw], per_node: 2, env: "
      "{LD_PRELOAD: '{verbs_shim}'}}}\n"
      "strategies: [unprotected]\n"
      "faults:\n"
      "  - {kind: qp_error, target: {rank: 3}, at: 1s, until: end}\n",
      "f.yaml");
  for (const Mistake& mistake : read.mistakes) ADD_FAILURE() << mistake.toString();
  ASSERT_TRUE(read.ok());
  const std::vector<Fault> faults = allFaults(*read.scenario);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].target->part, Part::kProcesses);
  EXPECT_EQ(faults[0].target->rank, 3);
  EXPECT_EQ(faults[0].target->node, 1);
}

TEST(RdmaVm, FaultsInsideOfGuestsAreRead) {
  const auto read = readScenario(
      text(kTwoGuests, kForPrograms,
           "  - {kind: qp_error, target: {node: 1}, device: rxe0, at: 1s, until: end}\n"
           "  - {kind: rdma_throttle, rate: 1Mbit, target: {node: 1, rail: 1}, at: 1s, "
           "duration: 1s}\n"),
      "f.yaml");
  ASSERT_TRUE(read.ok());
  const std::vector<Fault>& faults = read.scenario->faults;
  EXPECT_EQ(faults[0].target->part, Part::kProcesses);
  EXPECT_EQ(faults[0].target->node, 1);
  EXPECT_EQ(faults[1].target->part, Part::kRail);
  EXPECT_EQ(faults[1].target->rail, 1);
  for (const char* const kind : {"rdma_port_down", "rdma_silent_drop", "rdma_link_delete"}) {
    EXPECT_EQ(problems(text(kTwoGuests, kForPrograms,
                            std::string("  - {kind: ") + kind +
                                ", target: {node: 0, rail: 1}, at: 1s, duration: 1s}\n")),
              "");
  }
}

TEST(RdmaVm, WhatAVirtualNicCannotDoIsAMistakeWithItsPlace) {
  const auto throttle = [](const std::string& more) {
    return problems(text(kTwoGuests, kForPrograms,
                         "  - {kind: rdma_throttle, target: {node: 1, rail: 0}, at: 1s, "
                         "until: end, " +
                             more + "}\n"));
  };
  EXPECT_THAT(throttle("rate: 10%"), HasSubstr("f.yaml:7:"));
  EXPECT_THAT(throttle("rate: 10%"), HasSubstr("does not tell its speed"));
  EXPECT_THAT(throttle("rate: 1Mbit, traffic_class: 3"), HasSubstr("only adapters"));
  EXPECT_THAT(problems(text(kTwoGuests, kForPrograms,
                            "  - {kind: rdma_port_down, target: {rail_group: 0}, at: 1s, "
                            "until: end}\n")),
              HasSubstr("one node's device"));
  EXPECT_THAT(problems(text(kTwoGuests, kForPrograms,
                            "  - {kind: rdma_port_down, target: {node: 7, rail: 0}, at: 1s, "
                            "until: end}\n")),
              HasSubstr("there is no node 7"));
}

TEST(RdmaVm, OtherClustersAreNotConcerned) {
  EXPECT_EQ(problems(text("{kind: netns, nodes: 2, rails: 2, rail_rate: 1Gbit}", kForPrograms,
                          "  - {kind: loss, percent: 5%, target: {node: 1, rail: 0}, at: 1s, "
                          "until: end}\n")),
            "");
}

TEST(RdmaVm, OtherClustersHaveNoRdmaDevices) {
  for (const std::string cluster : {"{nodes: 2, rails: 2}", "{kind: netns, nodes: 2}"}) {
    const std::string told =
        problems(text(cluster, kForPrograms,
                      "  - {kind: rdma_port_down, target: {node: 1, rail: 0}, at: 1s, until: "
                      "end}\n"));
    EXPECT_THAT(told, HasSubstr("f.yaml:7:"));
    EXPECT_THAT(told, HasSubstr("cluster: {kind: rdma_vm}"));
  }
  // Programs can bring devices that no cluster has.
  EXPECT_EQ(problems(text("{kind: netns, nodes: 2}", kForPrograms,
                          "  - {kind: qp_error, target: {node: 1}, at: 1s, until: end}\n")),
            "");
}

}  // namespace
}  // namespace faultline::scenario
