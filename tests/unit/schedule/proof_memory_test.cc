#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "resilient_ccl/schedule/problems.h"
#include "resilient_ccl/schedule/proof_work.h"
#include "resilient_ccl/schedule/ring_all_reduce.h"
#include "resilient_ccl/schedule/verifier.h"
#include "tests/support/recorded_schedule.h"

// A schedule that anybody wrote is proved, or refused, within bounds of memory: each table of the
// proof at its limit, and one byte above. The schedules are wrong, and that is what is proved.

namespace faultline::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Op message(OpKind kind, int peer, std::int64_t elements) {
  return Op{.kind = kind, .peer = peer, .piece = {0, elements}, .source = {}};
}

/// Lanes in which one rank sends all that it has to the other; nothing orders them.
RecordedSchedule meetingIn(int lanes) {
  RecordedSchedule schedule(2, lanes, 2);
  for (int lane = 0; lane < lanes; ++lane) {
    schedule.at(0, lane) = {message(OpKind::kSend, 1, 2)};
    schedule.at(1, lane) = {message(OpKind::kRecv, 0, 2)};
  }
  return schedule;
}

/// One rank sends all that it has to another one, so often, in one lane. The data of an AllReduce
/// has as many pieces as there are ranks.
RecordedSchedule repeating(int ranks, int times, OpKind into) {
  RecordedSchedule schedule(ranks, 1, ranks);
  for (int i = 0; i < times; ++i) {
    schedule.at(0, 0).push_back(message(OpKind::kSend, 1, ranks));
    schedule.at(1, 0).push_back(message(into, 0, ranks));
  }
  return schedule;
}

/// Rank 0 is to reduce what rank 2 sends before all that rank 1 does, and rank 2 waits for rank 3:
/// so much arrives meanwhile.
RecordedSchedule holding(int ranks, int held) {
  RecordedSchedule schedule(ranks, 1, ranks);
  schedule.at(3, 0) = {message(OpKind::kSend, 2, ranks)};
  schedule.at(2, 0) = {message(OpKind::kRecv, 3, ranks), message(OpKind::kSend, 0, ranks)};
  schedule.at(2, 0)[1].waitCount = 1;
  schedule.at(2, 0)[1].waits[0] = {.lane = 0, .op = 0, .count = ranks};
  schedule.at(0, 0) = {message(OpKind::kRecvReduce, 2, ranks)};
  for (int i = 0; i < held; ++i) {
    schedule.at(1, 0).push_back(message(OpKind::kSend, 0, ranks));
    schedule.at(0, 0).push_back(message(OpKind::kRecvReduce, 1, ranks));
    schedule.at(0, 0).back().after = i;
  }
  return schedule;
}

/// Why a proof is given up that may have tables of so many bytes; empty: it is not.
std::string whyNotIn(std::int64_t mostBytes, const Schedule& schedule) {
  const auto report = verifySchedule(schedule, {.mostBytes = mostBytes});
  EXPECT_TRUE(report.ok() || report.status().code() == Code::kUnsupported);
  return report.ok() ? "" : report.status().message();
}

void expectLimit(const Schedule& schedule, std::int64_t bytes, const std::string& stage) {
  EXPECT_EQ(whyNotIn(bytes, schedule), "");
  EXPECT_THAT(
      whyNotIn(bytes - 1, schedule),
      HasSubstr(fmt::format("its proof takes too much: a table of {} bytes, and at most {}, in {}. "
                            "Write it with fewer operations",
                            bytes, bytes - 1, stage)));
}

TEST(ProofMemoryTest, WhatEventsOfManyRacingLanesReach) {
  // Each lane has 4 events, and is of interest at both ends of it to the rank that receives.
  constexpr int kLanes = 40;
  expectLimit(meetingIn(kLanes), std::int64_t{4} * kLanes * (2 * kLanes) * 4,
              "the search for operations that meet");
}

TEST(ProofMemoryTest, WhatOneRankTouches) {
  constexpr int kRanks = 16, kTimes = 400;
  expectLimit(repeating(kRanks, kTimes, OpKind::kRecv), std::int64_t{kTimes} * kRanks * 8,
              "the search for operations that meet");
}

TEST(ProofMemoryTest, SumsThatAreTold) {
  // Two ranks and a sum of each message: 16 bytes of each, and 32 for what it is the sum of.
  constexpr int kTimes = 200;
  expectLimit(repeating(2, kTimes, OpKind::kRecvReduce), (2 + kTimes) * 16 + kTimes * 32,
              "the following of its data");
}

TEST(ProofMemoryTest, WhatHasArrivedAndCannotBeReducedYet) {
  constexpr int kRanks = 16, kHeld = 200;
  expectLimit(holding(kRanks, kHeld), std::int64_t{kHeld + 1} * kRanks * 16,
              "the following of its data");
}

/// The least of which `isEnough`, at most `most`.
template <typename Enough>
std::int64_t leastOf(std::int64_t most, Enough isEnough) {
  std::int64_t least = 1;
  while (least < most) {
    const std::int64_t middle = least + (most - least) / 2;
    if (isEnough(middle)) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  return least;
}

TEST(ProofMemoryTest, TablesThatFitEachForThemselvesHaveToFitTogether) {
  constexpr std::int64_t kPlenty = 1 << 20;
  const RecordedSchedule schedule = holding(16, 200);
  const std::int64_t each =
      leastOf(kPlenty, [&](std::int64_t bytes) { return whyNotIn(bytes, schedule).empty(); });
  const auto whyNotTogether = [&](std::int64_t bytes) {
    const auto report = verifySchedule(schedule, {.mostBytes = each, .mostBytesTogether = bytes});
    return report.ok() ? "" : report.status().message();
  };
  const std::int64_t together =
      leastOf(kPlenty, [&](std::int64_t bytes) { return whyNotTogether(bytes).empty(); });
  EXPECT_GT(together, each);
  EXPECT_THAT(whyNotTogether(together - 1),
              HasSubstr(fmt::format(
                  "its proof takes too much: tables of {} bytes together, and at most {}, "
                  "in the search for operations that meet. Write it with fewer operations",
                  together, together - 1)));
}

TEST(ProofMemoryTest, PiecesOfDataAreCountedWhileTheyAreCut) {
  // All but the last element moves to one place further: a cut at each element in the end.
  const auto creeping = [](std::int64_t elements) {
    RecordedSchedule schedule(2, 1, elements);
    for (const int rank : {0, 1}) {
      schedule.at(rank, 0) = {message(OpKind::kSend, 1 - rank, elements - 1),
                              message(OpKind::kRecv, 1 - rank, elements - 1)};
      schedule.at(rank, 0)[1].piece.offset = 1;
    }
    return schedule;
  };
  constexpr std::int64_t kElements = 256;
  constexpr std::int64_t kBytes = kElements * 2 * 32;
  EXPECT_EQ(whyNotIn(kBytes, creeping(kElements)), "");
  EXPECT_THAT(whyNotIn(kBytes - 1, creeping(kElements)),
              HasSubstr("256 pieces of data on 2 ranks, and 511 of all ranks can be told apart"));
  // Far more elements than anybody could wait for.
  EXPECT_THAT(whyNotIn(kBytes, creeping(std::int64_t{1} << 40)),
              HasSubstr("in the cutting of its data into pieces"));
}

TEST(ProofMemoryTest, TablesOfOneRankAtATimeFindTheSame) {
  constexpr int kRanks = 4, kLanes = 20;
  RecordedSchedule around(kRanks, kLanes, kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int lane = 0; lane < kLanes; ++lane) {
      around.at(rank, lane) = {message(OpKind::kSend, (rank + 1) % kRanks, kRanks),
                               message(OpKind::kRecv, (rank + 3) % kRanks, kRanks)};
    }
  }
  constexpr std::int64_t kEvents = std::int64_t{kRanks} * kLanes * 4;
  constexpr std::int64_t kBytesOfOneRank = kEvents * (2 * kLanes) * 4;
  const auto all = verifySchedule(around);
  const auto each = verifySchedule(around, {.mostBytes = kBytesOfOneRank});
  ASSERT_TRUE(all.ok() && each.ok());
  ASSERT_THAT(all->problems, SizeIs(VerifyOptions().maxProblems));
  EXPECT_EQ(each->moreProblems, all->moreProblems);
  for (std::size_t i = 0; i < all->problems.size(); ++i) {
    EXPECT_EQ(each->problems.at(i).text, all->problems.at(i).text);
  }
  EXPECT_GT(each->work, all->work) << "in more passes";
  expectLimit(around, kBytesOfOneRank, "the search for operations that meet");
}

TEST(ProofMemoryTest, UsualSchedulesAreFarFromTheLimit) {
  EXPECT_EQ(whyNotIn(ProofWork::kMostBytes / 100, *ringAllReduce(64, 1 << 16, 8)), "");
}

TEST(ProofMemoryTest, RacesBeyondThoseThatAreShownAreCountedAlone) {
  constexpr int kLanes = 60;
  const auto few = verifySchedule(meetingIn(kLanes), {.maxProblems = 2});
  const auto all = verifySchedule(meetingIn(kLanes), {.maxProblems = 1'000'000});
  ASSERT_TRUE(few.ok() && all.ok());
  EXPECT_THAT(few->problems, SizeIs(2));
  EXPECT_EQ(few->moreProblems + 2, std::ssize(all->problems));
  EXPECT_GE(std::ssize(all->problems), kLanes * (kLanes - 1) / 2) << "each meets each";
  EXPECT_TRUE(few->countedAll);
}

TEST(ProofMemoryTest, TheSearchEndsWhenThereAreEnough) {
  // Each of them meets each other one: a few more than are enough.
  constexpr int kLanes = 1460;
  static_assert(std::int64_t{kLanes} * (kLanes - 1) / 2 > Problems::kEnough);
  const auto report = verifySchedule(meetingIn(kLanes));
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report->countedAll);
  EXPECT_GE(report->moreProblems + std::ssize(report->problems), Problems::kEnough);
  EXPECT_LE(report->moreProblems + std::ssize(report->problems), Problems::kEnough + 2)
      << "what both ranks end with is wrong as well";
}

TEST(ProblemsTest, TheFirstAreKeptAndTheOthersAreNotEvenMade) {
  Problems problems(2);
  EXPECT_TRUE(problems.empty());
  int made = 0;
  for (int i = 0; i < 5; ++i) problems.add([&] { return Problem{.rank = made++, .text = ""}; });
  EXPECT_EQ(made, 2);
  EXPECT_EQ(problems.count(), 5);
  EXPECT_EQ(problems.kept().back().rank, 1);
  EXPECT_FALSE(problems.empty());
}

TEST(ProblemsTest, ThereAreEnoughFromAMillionOn) {
  Problems problems(0);
  const auto make = [] { return Problem{}; };
  for (std::int64_t i = 1; i < Problems::kEnough; ++i) problems.add(make);
  EXPECT_FALSE(problems.areEnough());
  problems.add(make);
  EXPECT_TRUE(problems.areEnough());
  EXPECT_THAT(problems.kept(), IsEmpty());
}

TEST(ProofWorkTest, ATableThatDoesNotFitEndsIt) {
  ProofWork work(100, 50);
  ProofTable one(work), other(work);
  EXPECT_TRUE(one.fits(50));
  EXPECT_TRUE(other.fits(50)) << "each table for itself";
  EXPECT_FALSE(work.isOver());
  EXPECT_FALSE(one.fits(51));
  EXPECT_TRUE(work.isOver());
  EXPECT_EQ(work.tooLarge(), 51);
  EXPECT_FALSE(one.fits(1)) << "it stays over";
  EXPECT_FALSE(work.spend(1));
}

TEST(ProofWorkTest, TablesThatDoNotFitTogetherEndIt) {
  ProofWork work(100, 50, 80);
  ProofTable one(work);
  EXPECT_TRUE(one.fits(50));
  EXPECT_TRUE(one.fits(40)) << "it is smaller now";
  {
    ProofTable gone(work);
    EXPECT_TRUE(gone.fits(40));
  }
  ProofTable other(work);
  EXPECT_EQ(other.most(), 40);
  EXPECT_TRUE(other.fits(40));
  EXPECT_FALSE(other.fits(41));
  EXPECT_TRUE(work.isOver());
  EXPECT_EQ(work.tooLarge(), 0);
  EXPECT_EQ(work.tooLargeTogether(), 81);
}

}  // namespace
}  // namespace faultline::schedule
