#include "harness/scenario/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/reader.h"

namespace faultline::scenario {
namespace {

using reduction::DataType;
using reduction::ReduceOp;
using schedule::Collective;
using ::testing::ElementsAre;

TEST(SweepTest, EveryCombinationStandsOnceInTheOrderOfATable) {
  const Sweep sweep{.operations = {Collective::kAllReduce, Collective::kAllToAll},
                    .sizes = {8, 64},
                    .dtypes = {DataType::kF32},
                    .ops = {ReduceOp::kSum, ReduceOp::kMax},
                    .place = Place::kBoth};
  const auto reduce = [](Bytes size, ReduceOp op, bool inPlace) {
    return SweepCell{Collective::kAllReduce, size, DataType::kF32, op, inPlace};
  };
  const auto exchange = [](Bytes size) {
    return SweepCell{Collective::kAllToAll, size, DataType::kF32, ReduceOp::kSum, false};
  };
  EXPECT_THAT(cellsOf(sweep),
              ElementsAre(reduce(8, ReduceOp::kSum, false), reduce(8, ReduceOp::kSum, true),
                          reduce(64, ReduceOp::kSum, false), reduce(64, ReduceOp::kSum, true),
                          reduce(8, ReduceOp::kMax, false), reduce(8, ReduceOp::kMax, true),
                          reduce(64, ReduceOp::kMax, false), reduce(64, ReduceOp::kMax, true),
                          // Reduces nothing, and is never in place.
                          exchange(8), exchange(64)));
}

TEST(SweepTest, WhatCannotWorkInPlaceIsMeasuredOutOfPlace) {
  const Sweep sweep{.operations = {Collective::kSendRecv}, .place = Place::kIn};
  ASSERT_EQ(cellsOf(sweep).size(), 1u);
  EXPECT_FALSE(cellsOf(sweep).front().inPlace);
}

TEST(SweepTest, CountsAreThoseOfTheCalls) {
  const auto cell = [](Collective operation) {
    return SweepCell{.operation = operation, .size = 1003, .dtype = DataType::kF32};
  };
  EXPECT_EQ(countOf(cell(Collective::kAllReduce), 4), 250);
  EXPECT_EQ(bytesOf(cell(Collective::kAllReduce), 4), 1000);
  for (const Collective operation :
       {Collective::kAllGather, Collective::kReduceScatter, Collective::kAllToAll}) {
    EXPECT_EQ(countOf(cell(operation), 4), 62);
    EXPECT_EQ(bytesOf(cell(operation), 4), 4 * 62 * 4);
  }
}

TEST(SweepTest, ARangeEndsAtItsEnd) {
  EXPECT_THAT(sizesBetween(8, 64, 2), ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(sizesBetween(8, 100, 4), ElementsAre(8, 32));
  EXPECT_THAT(sizesBetween(8, 8, 2), ElementsAre(8));
}

TEST(SweepTest, IsReadAsItIsWritten) {
  const auto read = [](const std::string& keys) {
    const ReadResult result =
        readScenario("version: 1\nname: n\nworkload: {kind: collective, collective: {" + keys +
                         "}}\nstrategies: [armed]\n",
                     "f");
    EXPECT_TRUE(result.ok()) << keys;
    return result.scenario->workload.collective;
  };
  EXPECT_EQ(read(""), Sweep{});
  EXPECT_EQ(read("operations: reduce, sizes: 3KiB, place: in"),
            (Sweep{.operations = {Collective::kReduce}, .sizes = {3072}, .place = Place::kIn}));
  EXPECT_EQ(read("operations: [reduce, broadcast], from: 1KiB, to: 9KiB, factor: 3, dtypes: "
                 "[u8, f16], ops: [avg, prod]"),
            (Sweep{.operations = {Collective::kReduce, Collective::kBroadcast},
                   .sizes = {1024, 3072, 9216},
                   .dtypes = {DataType::kU8, DataType::kF16},
                   .ops = {ReduceOp::kAvg, ReduceOp::kProd}}));
}

}  // namespace
}  // namespace faultline::scenario
