#include "reports/pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

// How a chart of iterations per second is drawn where faults struck.

namespace faultline::reports {
namespace {

double countUntil(const std::vector<Pace>& pieces, double ms) {
  double count = 0;
  for (const Pace& piece : pieces) {
    const double share = std::min(1.0, std::max(0.0, (ms - piece.start_ms) / piece.ms));
    count += share * piece.count;
  }
  return count;
}

Run runOf(std::vector<Iteration> iterations, double fault_ms) {
  Run run;
  run.iterations = std::move(iterations);
  run.faults.emplace_back().start_ms = fault_ms;
  return run;
}

TEST(PaceTest, TheRateFallsWithTheFaultAndNotBefore) {
  const auto pieces = paceOf(runOf({{0, 0, 100}, {1, 100, 400}, {2, 500, 100}}, 150));
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[1].start_ms, 100);
  EXPECT_EQ(pieces[1].ms, 50);
  EXPECT_DOUBLE_EQ(pieces[1].count / pieces[1].ms, pieces[0].count / pieces[0].ms);
  EXPECT_DOUBLE_EQ(pieces[1].count + pieces[2].count, 1) << "it is one iteration";
  EXPECT_LT(pieces[2].count / pieces[2].ms, pieces[0].count / pieces[0].ms);
}

TEST(PaceTest, AnIterationThatWasLateWhenTheFaultStruckIsInOnePiece) {
  const auto pieces = paceOf(runOf({{0, 0, 100}, {1, 100, 300}, {2, 400, 100}}, 250));
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[1].start_ms, 100);
  EXPECT_EQ(pieces[1].ms, 300);
  EXPECT_EQ(pieces[1].count, 1);
}

TEST(PaceTest, AnInterruptedIterationStandsStillUntilItIsBegunAgain) {
  reports::Run run = runOf({{0, 0, 100}, {0, 2000, 100}, {1, 100, 2100}}, 150);
  run.iterations.back().attempts = 2;
  Restart& restart = run.restarts.emplace_back();
  restart.fault_ms = 150;
  restart.hang_ms = 600;
  restart.isolate_ms = 900;
  restart.load_ms = 300;
  const auto pieces = paceOf(run);
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_DOUBLE_EQ(countUntil(pieces, 150), 1.5);
  EXPECT_DOUBLE_EQ(countUntil(pieces, 2000), 1.5) << "nothing in between";
  EXPECT_EQ(pieces[3].start_ms, 2100) << "after what had to be done again";
  EXPECT_EQ(pieces[3].ms, 100);
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    EXPECT_GE(pieces[i].start_ms, pieces[i - 1].start_ms + pieces[i - 1].ms) << "they overlap";
  }
}

TEST(PaceTest, WhatNeverEndedIsNoWork) {
  reports::Run run = runOf({{0, 0, 100}}, 150);
  run.unfinished = Iteration{.index = 1, .start_ms = 100, .ms = 5000};
  const auto pieces = paceOf(run);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[1].ms, 50);
  EXPECT_EQ(pieces[2].count, 0);
  EXPECT_EQ(pieces[2].start_ms + pieces[2].ms, 5100);
}

}  // namespace
}  // namespace faultline::reports
