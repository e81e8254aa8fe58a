#include "resilient_ccl/channel/prober.h"

#include <gtest/gtest.h>

namespace faultline::channel {
namespace {

class ProberTest : public ::testing::Test {
 protected:
  std::uint32_t round() {
    now_ += 5ms;
    return prober_.beginRound(now_);
  }
  void answer(int path, std::uint32_t number, Duration after = 300us) {
    prober_.answered(path, number, now_ + after);
  }

  TimePoint now_ = TimePoint(1s);
  Prober prober_{3};
};

TEST_F(ProberTest, ThreeOpenProbesAndThreeLaterAnswersElsewhereConvict) {
  prober_.acquit(0);
  for (int i = 1; i <= 6; ++i) {
    EXPECT_FALSE(prober_.convicted(0)) << i;
    answer(1, round());
  }
  EXPECT_TRUE(prober_.convicted(0));
  EXPECT_FALSE(prober_.convicted(1));
}

TEST_F(ProberTest, SilenceEverywhereConvictsNobody) {
  prober_.acquit(0);
  for (int i = 0; i < 1000; ++i) round();
  for (int path = 0; path < 3; ++path) EXPECT_FALSE(prober_.convicted(path));
}

TEST_F(ProberTest, ALateAnswerAcquits) {
  prober_.acquit(0);
  const auto first = round();
  answer(1, first);
  for (int i = 0; i < 4; ++i) answer(1, round());
  prober_.answered(0, first, now_);
  answer(1, round());
  EXPECT_FALSE(prober_.convicted(0));
}

TEST_F(ProberTest, AProcessThatWakesUpAndAnswersPathByPathConvictsNothing) {
  prober_.acquit(0);
  std::vector<std::uint32_t> rounds;
  for (int i = 0; i < 30; ++i) rounds.push_back(round());
  now_ += 5s;  // stopped, then continued: path 1 is read first
  for (const auto number : rounds) prober_.answered(1, number, now_);
  EXPECT_FALSE(prober_.convicted(0));
}

TEST_F(ProberTest, RepeatedAnswersCountOnce) {
  prober_.acquit(0);
  for (int i = 0; i < 4; ++i) {
    const auto number = round();
    for (int copy = 0; copy < 5; ++copy) answer(1, number);
  }
  EXPECT_FALSE(prober_.convicted(0));
}

TEST_F(ProberTest, AnswersInARowStartAgainAfterAGap) {
  for (int i = 0; i < 3; ++i) answer(2, round());
  EXPECT_EQ(prober_.answeredInARow(2), 3);
  round();
  answer(2, round());
  EXPECT_EQ(prober_.answeredInARow(2), 1);
}

}  // namespace
}  // namespace faultline::channel
