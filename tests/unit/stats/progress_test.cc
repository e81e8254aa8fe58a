#include "harness/stats/progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace faultline::stats {
namespace {

/// Pieces of one each, back to back from `begin` on.
std::vector<Progress::Piece> pieces(double begin, double length, int count) {
  std::vector<Progress::Piece> list;
  for (int i = 0; i < count; ++i) {
    list.push_back({begin + i * length, begin + (i + 1) * length, 1});
  }
  return list;
}

TEST(ProgressTest, NothingIsDoneOfNothing) {
  const Progress none({});
  EXPECT_EQ(none.doneUntil(5), 0);
  EXPECT_FALSE(none.firstWindow(0, 10, 1, 0.1));
  EXPECT_EQ(none.firstWindow(3, 10, 1, 0), 3) << "no work is soon done";
}

TEST(ProgressTest, APieceIsDoneEvenly) {
  const Progress one({{10, 20, 4}});
  EXPECT_DOUBLE_EQ(one.doneUntil(5), 0);
  EXPECT_DOUBLE_EQ(one.doneUntil(10), 0);
  EXPECT_DOUBLE_EQ(one.doneUntil(15), 2);
  EXPECT_DOUBLE_EQ(one.doneUntil(20), 4);
  EXPECT_DOUBLE_EQ(one.doneUntil(99), 4);
  EXPECT_DOUBLE_EQ(one.doneIn(12.5, 5), 2);
}

TEST(ProgressTest, PiecesOverlapAndLeaveGaps) {
  const Progress some({{0, 10, 1}, {5, 15, 1}, {25, 30, 1}});
  EXPECT_DOUBLE_EQ(some.doneUntil(10), 1.5);
  EXPECT_DOUBLE_EQ(some.doneUntil(20), 2);
  EXPECT_DOUBLE_EQ(some.doneIn(15, 10), 0);
  EXPECT_DOUBLE_EQ(some.doneUntil(30), 3);
}

TEST(ProgressTest, APieceWithoutLengthIsDoneAtOnce) {
  const Progress some({{5, 5, 2}, {5, 5, 1}});
  EXPECT_DOUBLE_EQ(some.doneUntil(4.9), 0);
  EXPECT_NEAR(some.doneUntil(5.1), 3, 1e-6);
}

TEST(ProgressTest, TheFirstWindowMayBeginBetweenTwoEnds) {
  // Nothing until 1300, then one in each 100.
  const Progress late(pieces(1300, 100, 40));
  EXPECT_NEAR(*late.firstWindow(1000, 5300, 1000, 10), 1300, 1e-6);
  EXPECT_NEAR(*late.firstWindow(1000, 5300, 1000, 9.5), 1250, 1e-6);
  EXPECT_NEAR(*late.firstWindow(2000, 5300, 1000, 10), 2000, 1e-6) << "at once";
}

TEST(ProgressTest, NoWindowIsLongEnoughOrFastEnough) {
  const Progress steady(pieces(0, 100, 20));
  EXPECT_FALSE(steady.firstWindow(1001, 2000, 1000, 1)) << "it would end at 2001";
  EXPECT_TRUE(steady.firstWindow(1000, 2000, 1000, 10)) << "it ends at 2000";
  EXPECT_FALSE(steady.firstWindow(0, 2000, 1000, 10.1));
  // 10 in each second at the begin, too late for a window that is whole at the end.
  EXPECT_FALSE(Progress(pieces(1500, 100, 10)).firstWindow(0, 2400, 1000, 9.5));
}

TEST(ProgressTest, ManyFractionsAreAWhole) {
  const Progress thirds(pieces(0, 1000.0 / 3000, 30000));
  EXPECT_EQ(thirds.firstWindow(1000, 10000, 1000, 3000), 1000);
}

}  // namespace
}  // namespace faultline::stats
