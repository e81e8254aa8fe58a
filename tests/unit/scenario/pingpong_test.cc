#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/scenario/workload_kind.h"
#include "harness/workload/pingpong/section/values.h"
#include "tests/unit/scenario/expect_mistake.h"

namespace faultline::scenario {
namespace {

std::string exchangesOf(const std::string& pingpong, int nodes = 4,
                        const std::string& strategies = "[fault_free]") {
  return "version: 1\nname: it\ncluster: {nodes: " + std::to_string(nodes) +
         "}\nworkload: {kind: pingpong" + pingpong + "}\nstrategies: " + strategies + "\n";
}

TEST(PingpongTest, IsReadWithWhatIsUsual) {
  const ReadResult usual = readScenario(exchangesOf(""), "f");
  ASSERT_TRUE(usual.ok()) << usual.mistakes.front().toString();
  EXPECT_EQ(pingpongOf(usual.scenario->workload), Pingpong{});
  const ReadResult read =
      readScenario(exchangesOf(", pingpong: {size: 3B, exchanges: 7}, iterations: 9"), "f");
  ASSERT_TRUE(read.ok()) << read.mistakes.front().toString();
  const Workload& workload = read.scenario->workload;
  EXPECT_EQ(pingpongOf(workload), (Pingpong{.size = 3, .exchanges = 7}));
  EXPECT_NE(workload, usual.scenario->workload);
  EXPECT_EQ(workload.kind->iterations(workload), 9);
  EXPECT_EQ(workload.kind->dataOfRank(*read.scenario), 2 * 3 * 7);
  EXPECT_EQ(workload.kind->inWords(workload), "9 iterations of 7 exchanges of 3B");
}

TEST(PingpongTest, WhatIsImpossibleIsSaid) {
  expectMistake(exchangesOf("", 3), "4:18", "there are 3: write an even number");
  expectMistake(exchangesOf(", pingpong: {size: 1MiB, exchanges: 2000}"), "4:62",
                "2000 messages of 1MiB are more than the 1GiB");
  expectMistake(exchangesOf(", pingpong: {size: 0B}"), "4:45", "size");
  expectMistake(exchangesOf(", gradient: {size: 4B}"), "4:38",
                "a workload of kind pingpong has none");
  expectMistake(exchangesOf("", 4, "[fault_free, shrink]"), "5:26", "without its partner");
}

}  // namespace
}  // namespace faultline::scenario
