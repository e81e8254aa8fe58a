#include "resilient_ccl/comm/program.h"

#include <gtest/gtest.h>

#include "resilient_ccl/comm/completions.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/ring_all_reduce.h"
#include "tests/support/star_schedule.h"

namespace faultline::comm {
namespace {

using schedule::makeOp;
using schedule::OpKind;
using schedule::RecordedSchedule;

TEST(ProgramTest, ARingOutOfPlaceReadsItsSourceAndCopiesNothing) {
  for (const int ranks : {2, 3, 5}) {
    const auto ring = schedule::ringAllReduce(ranks, 101, 2);
    const auto program = Program::compile(*ring, 1);
    EXPECT_TRUE(program->readsSource());
    EXPECT_TRUE(program->untouched().empty());
    for (const Program::Lane& lane : program->lanes()) {
      int fromSource = 0;
      for (const Program::Step& step : lane.steps) {
        fromSource += step.readsSource ? 1 : 0;
        if (step.kind == OpKind::kRecvReduce) {
          EXPECT_TRUE(step.readsSource);
        }
        EXPECT_EQ(step.waitCount, 0) << "each wait of a ring is for the same elements";
      }
      EXPECT_EQ(fromSource, ranks);  // the first send, and each reduction
      EXPECT_EQ(lane.sendPeers, 1);
      EXPECT_EQ(lane.receivePeers, 1);
    }
  }
}

TEST(ProgramTest, AnAllReduceOutOfPlaceReadsItsSourceAndCopiesNothing) {
  for (const schedule::Algorithm& algorithm : schedule::algorithms()) {
    SCOPED_TRACE(algorithm.name);
    const auto made = schedule::makeSchedule(
        algorithm.name, {.ranks = 4,
                         .elements = 100'000,
                         .segments = 8,
                         .bandwidths = {{1, 0.875, 1, 1}, {1, 0.875, 1, 1}},
                         .ranksPerNode = algorithm.name == "optcc_server" ? 2 : 1});
    ASSERT_TRUE(made.ok()) << made.status().message();
    for (int rank = 0; rank < 4; ++rank) {
      const auto program = Program::compile(**made, rank);
      EXPECT_TRUE(program->readsSource());
      EXPECT_TRUE(program->untouched().empty());
    }
  }
}

TEST(ProgramTest, AloneEverythingIsToBeCopied) {
  const auto program = Program::compile(*schedule::ringAllReduce(1, 101, 2), 0);
  ASSERT_EQ(program->untouched().size(), 1u);
  EXPECT_EQ(program->untouched()[0].count, 101);
}

TEST(ProgramTest, EachElementIsCompletedOnceByOneRank) {
  const auto ring = schedule::ringAllReduce(5, 1000, 3);
  const auto star = starAllReduce(5, 1000);
  for (const schedule::Schedule* schedule : {ring.get(), star.get()}) {
    std::vector<int> completed(1000);
    for (int rank = 0; rank < 5; ++rank) {
      const auto program = Program::compile(*schedule, rank, *findCompletions(*schedule, rank));
      for (const Program::Lane& lane : program->lanes()) {
        for (const Program::Step& step : lane.steps) {
          for (std::int64_t i = 0; step.completes && i < step.piece.count; ++i) {
            ++completed[step.piece.offset + i];
          }
        }
      }
    }
    EXPECT_EQ(completed, std::vector<int>(1000, 1)) << schedule->algorithm();
  }
}

TEST(ProgramTest, ContributionsToOnePieceAreAChain) {
  const auto program = Program::compile(*starAllReduce(4, 100), 2);
  std::vector<const Program::Step*> chain;
  for (const Program::Step& step : program->lanes()[0].steps) {
    if (step.kind == OpKind::kRecvReduce) chain.push_back(&step);
  }
  ASSERT_EQ(chain.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(chain[i]->chain, 0);
    EXPECT_EQ(chain[i]->chainBegins, i == 0);
    EXPECT_EQ(chain[i]->chainEnds, i == 2);
    EXPECT_EQ(chain[i]->waitCount, 0) << "its message may come before its turn";
  }
}

// What is sent between two reductions must have been rounded: no chain.
TEST(ProgramTest, APartialSumThatIsSentEndsAChain) {
  RecordedSchedule schedule(2, 1, 10);
  auto& ops = schedule.at(0, 0);
  ops = {makeOp(OpKind::kRecvReduce, 1, {0, 10}), makeOp(OpKind::kSend, 1, {0, 10}, {{0, 0, 10}}),
         makeOp(OpKind::kRecvReduce, 1, {0, 10}, {{0, 1, 10}})};
  schedule.at(1, 0) = {makeOp(OpKind::kSend, 0, {0, 10}), makeOp(OpKind::kRecv, 0, {0, 10}),
                       makeOp(OpKind::kSend, 0, {0, 10}, {{0, 1, 10}})};
  const auto program = Program::compile(schedule, 0);
  const auto& steps = program->lanes()[0].steps;
  EXPECT_TRUE(steps[0].chainEnds);
  EXPECT_TRUE(steps[2].chainBegins);
  EXPECT_NE(steps[0].chain, steps[2].chain);
}

// The same, sent by another lane.
TEST(ProgramTest, APartialSumThatAnotherLaneSendsEndsAChain) {
  RecordedSchedule schedule(2, 2, 10);
  schedule.at(0, 0) = {makeOp(OpKind::kRecvReduce, 1, {0, 10}),
                       makeOp(OpKind::kRecvReduce, 1, {0, 10}, {{1, 0, 10}})};
  schedule.at(0, 1) = {makeOp(OpKind::kSend, 1, {0, 10}, {{0, 0, 10}})};
  const auto program = Program::compile(schedule, 0);
  EXPECT_TRUE(program->lanes()[0].steps[0].chainEnds);
  EXPECT_TRUE(program->lanes()[0].steps[1].chainBegins);
}

// Lanes that share elements may lean on the order of whole operations: waits stay.
TEST(ProgramTest, WhereLanesShareElementsWaitsStayAndTheSourceIsCopied) {
  RecordedSchedule schedule(2, 2, 10);
  schedule.at(0, 0) = {makeOp(OpKind::kRecv, 1, {0, 10})};
  schedule.at(0, 1) = {makeOp(OpKind::kSend, 1, {0, 10}, {{0, 0, 10}})};
  schedule.at(1, 0) = {makeOp(OpKind::kSend, 0, {0, 10})};
  schedule.at(1, 1) = {makeOp(OpKind::kRecv, 0, {0, 10}, {{0, 0, 10}})};
  const auto program = Program::compile(schedule, 0);
  EXPECT_FALSE(program->readsSource());
  EXPECT_TRUE(program->lanesWait());
  EXPECT_EQ(program->lanes()[1].steps[0].waitCount, 1);
}

}  // namespace
}  // namespace faultline::comm
