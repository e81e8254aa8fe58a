#include "harness/record/iteration_table.h"

#include <gtest/gtest.h>

namespace faultline::run {
namespace {

constexpr TimePoint kFirst{100s};

TEST(IterationTableTest, AnIterationIsAsSlowAsItsSlowestRank) {
  IterationTable table(2);
  EXPECT_FALSE(table.isOpen(0));
  table.began(0, kFirst + 2ms);
  EXPECT_TRUE(table.isOpen(0));
  table.began(0, kFirst);
  table.ended(0, kFirst + 50ms, 1ms);
  ASSERT_TRUE(table.open());
  EXPECT_EQ(table.open()->begin, kFirst);
  table.ended(0, kFirst + 40ms, 3ms);
  EXPECT_FALSE(table.open());
  ASSERT_EQ(table.complete().size(), 1u);
  EXPECT_EQ(table.complete()[0].end, kFirst + 50ms);
  EXPECT_EQ(table.complete()[0].checkpoint, 3ms);
  EXPECT_EQ(table.next(), 1);
}

// Of requests one rank tells the begin, and another one may be heard of first.
TEST(IterationTableTest, AnEndThatIsHeardBeforeTheBeginCountsWithIt) {
  IterationTable table(2);
  table.ended(0, kFirst + 50ms, 2ms);
  EXPECT_FALSE(table.isOpen(0));
  EXPECT_TRUE(table.complete().empty());
  EXPECT_FALSE(table.lastEnd());
  table.began(0, kFirst);
  EXPECT_TRUE(table.isOpen(0));
  table.ended(0, kFirst + 40ms, 1ms);
  ASSERT_EQ(table.complete().size(), 1u);
  EXPECT_EQ(table.complete()[0].begin, kFirst);
  EXPECT_EQ(table.complete()[0].end, kFirst + 50ms);
  EXPECT_EQ(table.complete()[0].checkpoint, 2ms);
  EXPECT_EQ(table.lastEnd(), kFirst + 50ms);
  // Not that of ranks that were killed.
  table.ended(1, kFirst + 60ms, {});
  table.cutOff(std::nullopt);
  table.began(1, kFirst + 70ms);
  table.ended(1, kFirst + 80ms, {});
  EXPECT_EQ(table.complete().size(), 1u);
}

TEST(IterationTableTest, ARestartLosesTheOpenIterationAndRedoesOthers) {
  IterationTable table(1);
  for (int i = 0; i < 3; ++i) {
    table.began(i, kFirst);
    table.ended(i, kFirst + 1ms, {});
  }
  table.began(3, kFirst + 9ms);
  const auto lost = table.cutOff(kFirst);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->index, 3);
  EXPECT_FALSE(table.open());
  EXPECT_FALSE(table.isOpen(3));
  table.began(2, kFirst + 1s);
  table.ended(2, kFirst + 1001ms, {});
  EXPECT_EQ(table.complete().size(), 4u);
  EXPECT_EQ(table.next(), 3);
}

TEST(IterationTableTest, AnInterruptedIterationLastsFromItsFirstBeginToItsFinalEnd) {
  IterationTable table(1);
  table.began(0, kFirst);
  table.ended(0, kFirst + 10ms, {});
  table.began(1, kFirst + 20ms);
  table.cutOff(kFirst + 25ms);
  ASSERT_TRUE(table.unfinished());
  EXPECT_EQ(table.unfinished()->begin, kFirst + 20ms);
  table.began(0, kFirst + 2s);
  table.ended(0, kFirst + 2010ms, {});
  table.began(1, kFirst + 2020ms);
  table.cutOff(kFirst + 2025ms);
  EXPECT_FALSE(table.isOpen(1)) << "its next mark is the first since the restart";
  table.began(1, kFirst + 4s);
  EXPECT_EQ(table.open()->resumed, kFirst + 4s) << "a watchdog waits for this attempt";
  table.ended(1, kFirst + 4010ms, {});
  EXPECT_FALSE(table.unfinished());
  ASSERT_EQ(table.complete().size(), 3u);
  const IterationTable::Row& row = table.complete().back();
  EXPECT_EQ(row.begin, kFirst + 20ms);
  EXPECT_EQ(row.end, kFirst + 4010ms);
  EXPECT_EQ(row.attempts, 3);
  EXPECT_EQ(table.complete()[1].attempts, 1) << "it had ended, and was only done again";
}

TEST(IterationTableTest, AnInterruptionBetweenTwoIterationsCountsForTheNext) {
  IterationTable table(1);
  table.began(0, kFirst);
  table.ended(0, kFirst + 10ms, {});
  EXPECT_FALSE(table.cutOff(kFirst + 15ms));
  table.began(0, kFirst + 2s);
  table.ended(0, kFirst + 2010ms, {});
  table.began(1, kFirst + 2020ms);
  table.ended(1, kFirst + 2030ms, {});
  EXPECT_EQ(table.complete().back().begin, kFirst + 15ms) << "since the job waited for it";
  EXPECT_EQ(table.complete().back().attempts, 2);
}

TEST(IterationTableTest, AnInterruptionAfterTheLastIterationCountsForThatOne) {
  IterationTable table(1);
  table.began(0, kFirst);
  table.ended(0, kFirst + 10ms, {});
  table.cutOff(kFirst + 15ms);
  table.began(0, kFirst + 2s);
  table.ended(0, kFirst + 2010ms, {});
  EXPECT_TRUE(table.unfinished());
  table.finished();
  EXPECT_FALSE(table.unfinished());
  EXPECT_EQ(table.complete().back().begin, kFirst + 15ms);
}

TEST(IterationTableTest, FewerRanksThatHadToWaitBetweenTwoIterationsCountItForTheNext) {
  IterationTable table(2);
  table.began(0, kFirst);
  for (int rank = 0; rank < 2; ++rank) table.ended(0, kFirst + 10ms, {});
  table.shrunk(1, 1, kFirst + 20ms, kFirst + 900ms);
  table.began(1, kFirst + 910ms);
  table.ended(1, kFirst + 920ms, {});
  EXPECT_EQ(table.complete().back().begin, kFirst + 20ms);
  EXPECT_EQ(table.complete().back().resumed, kFirst + 20ms) << "the job's time, as no restart's";
}

TEST(IterationTableTest, FewerRanksBeginWhatIsOpenAgainAndDoLess) {
  IterationTable table(4);
  const auto endOn = [&](int iteration, int ranks, TimePoint when) {
    for (int i = 0; i < ranks; ++i) table.ended(iteration, when, {});
  };
  table.began(0, kFirst);
  endOn(0, 4, kFirst + 10ms);
  table.began(1, kFirst + 20ms);
  endOn(1, 1, kFirst + 30ms);  // one of them has ended it and begun the next one
  table.began(2, kFirst + 31ms);
  table.shrunk(3, 2, kFirst + 40ms, kFirst + 500ms);
  ASSERT_EQ(table.complete().size(), 2u) << "what one has done, all get from it";
  EXPECT_EQ(table.complete()[1].end, kFirst + 500ms);
  EXPECT_TRUE(table.isOpen(2));
  table.began(2, kFirst + 501ms);
  endOn(2, 2, kFirst + 530ms);
  EXPECT_EQ(table.complete().size(), 2u);
  endOn(2, 1, kFirst + 540ms);
  ASSERT_EQ(table.complete().size(), 3u);
  EXPECT_EQ(table.complete()[2].begin, kFirst + 31ms) << "it took all the time since";
  EXPECT_DOUBLE_EQ(table.work(), 1 + 0.75 + 0.75);
}

}  // namespace
}  // namespace faultline::run
