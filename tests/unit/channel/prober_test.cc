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

TEST_F(ProberTest, AnswersThatComeTogetherAreOneProof) {
  // Rounds close behind each other wait in the sockets of a process that wakes up; path 1 is read
  // first, and answers them all in time.
  prober_.acquit(0);
  for (int i = 0; i < 4; ++i) round();
  std::vector<std::uint32_t> waiting;
  for (int i = 0; i < 3; ++i) {
    now_ += 2ms;
    waiting.push_back(prober_.beginRound(now_));
  }
  for (const auto number : waiting) answer(1, number);
  EXPECT_FALSE(prober_.convicted(0));
  answer(1, round());
  EXPECT_FALSE(prober_.convicted(0));
  answer(1, round());
  EXPECT_TRUE(prober_.convicted(0));
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

TEST_F(ProberTest, TheDirectionIsThatOfTheRoundsThatWereNotHeard) {
  // Own rounds over paths 0 and 1, as the other end reports them; the other's as they come in.
  for (const bool outgoing : {false, true}) {
    for (const bool incoming : {false, true}) {
      Prober prober(3);
      Hearing there;
      for (std::uint32_t number = 1; number <= 6; ++number) {
        prober.beginRound(now_);
        there.note(1, number);
        prober.heard(1, number);
        if (!outgoing) there.note(0, number);
        if (!incoming) prober.heard(0, number);
        prober.reported(there);
      }
      EXPECT_EQ(prober.deadDirection(0), outgoing && incoming ? DeadDirection::kBoth
                                         : outgoing           ? DeadDirection::kOutgoing
                                         : incoming           ? DeadDirection::kIncoming
                                                              : DeadDirection::kUnknown);
      EXPECT_EQ(prober.deadDirection(1), DeadDirection::kUnknown);
    }
  }
}

TEST_F(ProberTest, AnOldReportAndOneOfRoundsNeverSentChangeNothing) {
  Hearing there;
  for (int i = 0; i < 6; ++i) there.note(1, round());
  const Hearing before = there;
  there.note(0, 6);
  prober_.reported(there);
  Hearing old;
  for (std::uint32_t number = 1; number <= 5; ++number) old.note(1, number);
  prober_.reported(old);
  EXPECT_EQ(prober_.deadDirection(0), DeadDirection::kUnknown);
  Hearing lie = before;
  for (std::uint32_t number = 7; number <= 9; ++number) lie.note(1, number);
  prober_.reported(lie);
  EXPECT_EQ(prober_.deadDirection(0), DeadDirection::kUnknown);
}

TEST_F(ProberTest, AnswersInARowAreCountedAfterRoundsWereLost) {
  prober_.acquit(0);
  answer(0, round());
  EXPECT_FALSE(prober_.lostRounds(0));
  round();
  EXPECT_FALSE(prober_.lostRounds(0));  // may still be on its way
  answer(0, round());
  EXPECT_TRUE(prober_.lostRounds(0));
  EXPECT_EQ(prober_.answeredInARow(0), 1);
  answer(0, round());
  EXPECT_EQ(prober_.answeredInARow(0), 2);
  prober_.countAgain(0);
  EXPECT_TRUE(prober_.lostRounds(0)) << "only the answers are counted again";
  EXPECT_EQ(prober_.answeredInARow(0), 0);
  answer(0, round());
  EXPECT_EQ(prober_.answeredInARow(0), 1);
  prober_.acquit(0);
  EXPECT_FALSE(prober_.lostRounds(0));
  EXPECT_EQ(prober_.answeredInARow(0), 0);
}

TEST_F(ProberTest, ARoundThatIsOvertakenAtOnceIsNotLost) {
  prober_.acquit(0);
  const auto first = round();
  now_ -= 4500us;
  const auto second = round();  // half a millisecond later
  answer(0, second);
  answer(0, first);
  EXPECT_FALSE(prober_.lostRounds(0));
}

}  // namespace
}  // namespace faultline::channel
