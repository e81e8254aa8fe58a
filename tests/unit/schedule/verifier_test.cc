#include "resilient_ccl/schedule/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resilient_ccl/schedule/ring_all_reduce.h"
#include "tests/support/recorded_schedule.h"

namespace faultline::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string problemsOf(const Schedule& schedule, VerifyOptions options = {}) {
  const Result<VerifyReport> report = verifySchedule(schedule, options);
  if (!report.ok()) return report.status().toString();
  std::string text;
  for (const Problem& problem : report->problems) {
    text += fmt::format("rank {} lane {} op {}: {}\n", problem.rank, problem.lane, problem.op,
                        problem.text);
  }
  return text;
}

/// Two ranks swap halves: the smallest correct schedule with every kind of message.
RecordedSchedule pair() { return RecordedSchedule(*ringAllReduce(2, 8, 1)); }

TEST(VerifierTest, ACorrectScheduleHasNoProblems) {
  const Result<VerifyReport> report = verifySchedule(*ringAllReduce(5, 23, 3));
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok()) << problemsOf(*ringAllReduce(5, 23, 3));
  EXPECT_EQ(report->ranks, 5);
  EXPECT_EQ(report->operations, 5 * 3 * 16);
}

TEST(VerifierTest, NothingAtAllIsRightForOneRankAndForNoElements) {
  EXPECT_EQ(problemsOf(RecordedSchedule(1, 1, 10)), "");
  EXPECT_EQ(problemsOf(RecordedSchedule(3, 1, 0)), "");
}

TEST(VerifierTest, NothingAtAllIsWrongForTwoRanks) {
  EXPECT_THAT(problemsOf(RecordedSchedule(2, 1, 10)),
              HasSubstr("rank 0 lane -1 op -1: in the end elements [0, 10) lack the contribution "
                        "of rank 1; nothing was ever written"));
}

TEST(VerifierTest, AnUnmatchedMessageIsNamed) {
  RecordedSchedule schedule = pair();
  schedule.at(1, 0).pop_back();  // the last send of rank 1
  EXPECT_THAT(problemsOf(schedule),
              HasSubstr("rank 0 lane 0 op 2: receives from rank 1, which has no send for it"));
}

TEST(VerifierTest, CountsOfBothEndsMustAgree) {
  RecordedSchedule schedule = pair();
  schedule.at(0, 0)[1].piece.count -= 1;
  EXPECT_THAT(problemsOf(schedule), HasSubstr("receives 4 elements from rank 0, which sends 3"));
}

TEST(VerifierTest, PiecesMustLieInside) {
  RecordedSchedule schedule = pair();
  schedule.at(0, 0)[1].piece.offset += 5;
  EXPECT_THAT(problemsOf(schedule), HasSubstr("is not inside the buffer of 8 elements"));
}

TEST(VerifierTest, PeersMustExist) {
  RecordedSchedule schedule = pair();
  schedule.at(0, 0)[0].peer = 2;
  EXPECT_THAT(problemsOf(schedule), HasSubstr("has rank 2 as its peer"));
  schedule.at(0, 0)[0].peer = 0;
  EXPECT_THAT(problemsOf(schedule), HasSubstr("has rank 0 as its peer"));
}

TEST(VerifierTest, WaitsMustReferToEarlierOperations) {
  RecordedSchedule schedule = pair();
  Wait& wait = schedule.at(0, 0)[3].waits[0];
  wait.op = 3;
  EXPECT_THAT(problemsOf(schedule), HasSubstr("op 3: waits for op 3, which is not before it"));
  wait.op = 17;
  EXPECT_THAT(problemsOf(schedule), HasSubstr("waits for lane 0 op 17, which does not exist"));
  wait = {.lane = 0, .op = 0, .count = 5};
  EXPECT_THAT(problemsOf(schedule), HasSubstr("waits for 5 elements of an operation that has 4"));
}

TEST(VerifierTest, ASendMustWaitForItsReduction) {
  RecordedSchedule schedule = pair();
  schedule.at(0, 0)[3].waitCount = 0;
  EXPECT_THAT(problemsOf(schedule), HasSubstr("rank 0 lane 0 op 3: send of elements [4, 8) can run "
                                              "at the same time as the recvReduce of lane 0 op 0"));
}

TEST(VerifierTest, AWatermarkShortOfTheDataIsARace) {
  RecordedSchedule schedule = pair();
  schedule.at(0, 0)[3].waits[0].count = 3;
  EXPECT_THAT(problemsOf(schedule), HasSubstr("rank 0 lane 0 op 3: send of elements [4, 8)"));
}

TEST(VerifierTest, AWatermarkCoversItsElements) {
  // Rank 0 reduces two elements and passes on each half as soon as it is there.
  RecordedSchedule schedule(2, 1, 2);
  schedule.at(0, 0) = {makeOp(OpKind::kRecvReduce, 1, {0, 2}),
                       makeOp(OpKind::kSend, 1, {0, 1}, {{0, 0, 1}}),
                       makeOp(OpKind::kSend, 1, {1, 1}, {{0, 0, 2}})};
  schedule.at(1, 0) = {makeOp(OpKind::kSend, 0, {0, 2}), makeOp(OpKind::kRecv, 0, {0, 1}),
                       makeOp(OpKind::kRecv, 0, {1, 1})};
  EXPECT_EQ(problemsOf(schedule), "");
  schedule.at(0, 0)[2].waits[0].count = 1;
  EXPECT_THAT(problemsOf(schedule), HasSubstr("rank 0 lane 0 op 2: send of elements [1, 2)"));
}

TEST(VerifierTest, LanesThatShareElementsMustBeOrdered) {
  // Rank 0 sends its value in lane 0 while lane 1 reduces into it.
  RecordedSchedule schedule(2, 2, 1);
  schedule.at(0, 0) = {makeOp(OpKind::kSend, 1, {0, 1})};
  schedule.at(1, 0) = {makeOp(OpKind::kRecvReduce, 0, {0, 1})};
  schedule.at(0, 1) = {makeOp(OpKind::kRecv, 1, {0, 1})};
  schedule.at(1, 1) = {makeOp(OpKind::kSend, 0, {0, 1})};
  EXPECT_THAT(problemsOf(schedule), HasSubstr("rank 1 lane 1 op 0: send"));
  // Waiting for the reduction mends both: rank 0 receives only what its send has contributed to.
  schedule.at(1, 1)[0] = makeOp(OpKind::kSend, 0, {0, 1}, {{0, 0, 1}});
  EXPECT_EQ(problemsOf(schedule), "");
}

TEST(VerifierTest, LayersMustNotTouchWhatHigherOnesHaveWritten) {
  // Rank 0 gives its value in lane 0, rank 1 the sum back in lane 1.
  RecordedSchedule schedule(2, 2, 1);
  schedule.at(0, 0) = {makeOp(OpKind::kSend, 1, {0, 1})};
  schedule.at(1, 0) = {makeOp(OpKind::kRecvReduce, 0, {0, 1})};
  schedule.at(0, 1) = {makeOp(OpKind::kRecv, 1, {0, 1})};
  schedule.at(1, 1) = {makeOp(OpKind::kSend, 0, {0, 1}, {{0, 0, 1}})};
  schedule.laneOrder = {0, 1};
  EXPECT_EQ(problemsOf(schedule), "");
  schedule.laneOrder = {1, 0};
  EXPECT_THAT(problemsOf(schedule),
              HasSubstr("rank 1 lane 1 op 0: touches elements [0, +1), which a higher layer"));
}

TEST(VerifierTest, LayersMustNotWriteWhatHigherOnesHaveRead) {
  // Rank 0 gives its value in lane 1, rank 1 the sum back in lane 0, over it.
  RecordedSchedule schedule(2, 2, 1);
  schedule.at(0, 1) = {makeOp(OpKind::kSend, 1, {0, 1})};
  schedule.at(1, 1) = {makeOp(OpKind::kRecvReduce, 0, {0, 1})};
  schedule.at(0, 0) = {makeOp(OpKind::kRecv, 1, {0, 1}, {{1, 0, 1}})};
  schedule.at(1, 0) = {makeOp(OpKind::kSend, 0, {0, 1}, {{1, 0, 1}})};
  EXPECT_EQ(problemsOf(schedule), "");
  schedule.laneOrder = {0, 1};
  EXPECT_THAT(problemsOf(schedule), HasSubstr("rank 0 lane 0 op 0: writes elements [0, +1), which "
                                              "a higher layer has read"));
}

TEST(VerifierTest, LayersAreEachLaneOnce) {
  RecordedSchedule schedule = pair();
  for (const std::vector<int>& order : {std::vector{0, 0}, std::vector{1}, std::vector{-1}}) {
    schedule.laneOrder = order;
    EXPECT_THAT(problemsOf(schedule), HasSubstr("layers are not each of its lanes once"));
  }
}

TEST(VerifierTest, ACircleOfWaitsIsADeadlock) {
  RecordedSchedule schedule(2, 2, 2);
  for (const int rank : {0, 1}) {
    for (const int lane : {0, 1}) {
      schedule.at(rank, lane) = {makeOp(OpKind::kSend, 1 - rank, {lane, 1}, {{1 - lane, 1, 1}}),
                                 makeOp(OpKind::kRecvReduce, 1 - rank, {lane, 1})};
    }
  }
  EXPECT_THAT(problemsOf(schedule), HasSubstr("rank 0 lane 0 op 0: deadlock: send waits for lane "
                                              "1 op 1"));
}

TEST(VerifierTest, ANarrowWindowMustNotDeadlock) {
  // Rank 1 offers its value first to rank 2, which takes it only after rank 0's; rank 0 sends that
  // only after it has rank 1's. (It computes nonsense; only the deadlock is looked for.)
  RecordedSchedule schedule(3, 1, 1);
  schedule.at(0, 0) = {makeOp(OpKind::kRecv, 1, {0, 1}),
                       makeOp(OpKind::kSend, 2, {0, 1}, {{0, 0, 1}})};
  schedule.at(1, 0) = {makeOp(OpKind::kSend, 2, {0, 1}), makeOp(OpKind::kSend, 0, {0, 1})};
  schedule.at(2, 0) = {makeOp(OpKind::kRecv, 0, {0, 1}), makeOp(OpKind::kRecv, 1, {0, 1})};
  EXPECT_THAT(problemsOf(schedule), HasSubstr("rank 1 lane 0 op 0: deadlock with a window of 1"));
  EXPECT_THAT(problemsOf(schedule, {.window = 2}), Not(HasSubstr("deadlock")));
  std::swap(schedule.at(1, 0)[0], schedule.at(1, 0)[1]);
  EXPECT_THAT(problemsOf(schedule), Not(HasSubstr("deadlock")));
}

TEST(VerifierTest, DoubleAndMissingContributionsAreNamed) {
  RecordedSchedule doubled(2, 1, 1);
  doubled.at(0, 0) = {makeOp(OpKind::kSend, 1, {0, 1}), makeOp(OpKind::kRecv, 1, {0, 1})};
  doubled.at(1, 0) = {makeOp(OpKind::kRecvReduce, 0, {0, 1}),
                      makeOp(OpKind::kSend, 0, {0, 1}, {{0, 0, 1}})};
  EXPECT_EQ(problemsOf(doubled), "");
  doubled.at(0, 0)[1].kind = OpKind::kRecvReduce;
  EXPECT_THAT(problemsOf(doubled), HasSubstr("rank 0 lane 0 op 1: in the end elements [0, 1) "
                                             "contain the contribution of rank 0 more than once"));
  doubled.at(0, 0)[1].kind = OpKind::kRecv;
  doubled.at(1, 0)[0].kind = OpKind::kRecv;
  EXPECT_THAT(problemsOf(doubled), HasSubstr("lack the contribution of rank 1"));
}

TEST(VerifierTest, DataMustLandWhereItBelongs) {
  RecordedSchedule schedule(2, 1, 2);
  schedule.at(0, 0) = {makeOp(OpKind::kSend, 1, {0, 1})};
  schedule.at(1, 0) = {makeOp(OpKind::kRecvReduce, 0, {1, 1})};
  EXPECT_THAT(problemsOf(schedule),
              HasSubstr("rank 1 lane 0 op 0: adds elements of other places to [1, +1)"));
}

TEST(VerifierTest, DifferentOrdersOfSummationAreNotBitIdentical) {
  // Ranks 0 and 1 share their sum, then add the values of ranks 2 and 3 in opposite orders.
  const Piece all{0, 1};
  RecordedSchedule schedule(4, 1, 1);
  schedule.at(0, 0) = {makeOp(OpKind::kRecvReduce, 1, all),
                       makeOp(OpKind::kSend, 1, all, {{0, 0, 1}}),
                       makeOp(OpKind::kRecvReduce, 2, all, {{0, 1, 1}}),
                       makeOp(OpKind::kRecvReduce, 3, all, {{0, 2, 1}}),
                       makeOp(OpKind::kSend, 2, all, {{0, 3, 1}}),
                       makeOp(OpKind::kSend, 3, all, {{0, 3, 1}})};
  schedule.at(1, 0) = {makeOp(OpKind::kSend, 0, all), makeOp(OpKind::kRecv, 0, all),
                       makeOp(OpKind::kRecvReduce, 2, all, {{0, 1, 1}}),
                       makeOp(OpKind::kRecvReduce, 3, all, {{0, 2, 1}})};
  for (const int rank : {2, 3}) {
    schedule.at(rank, 0) = {makeOp(OpKind::kSend, 0, all), makeOp(OpKind::kSend, 1, all),
                            makeOp(OpKind::kRecv, 0, all, {{0, 1, 1}})};
  }
  EXPECT_EQ(problemsOf(schedule), "");
  std::swap(schedule.at(1, 0)[2].peer, schedule.at(1, 0)[3].peer);
  std::swap(schedule.at(3, 0)[0].peer, schedule.at(3, 0)[1].peer);
  schedule.at(3, 0)[2].waits[0].op = 0;
  EXPECT_EQ(problemsOf(schedule),
            "rank 1 lane 0 op 3: in the end elements [0, 1) are summed in another order than on "
            "rank 0: results are not bit-identical; last written here\n");
}

/// Each of two ranks sends all its data but the last element, to one place further: every cut of
/// the data moves on by one until there is one at each element.
RecordedSchedule creeping(std::int64_t elements) {
  RecordedSchedule schedule(2, 1, elements);
  for (int rank = 0; rank < 2; ++rank) {
    schedule.at(rank, 0) = {
        Op{.kind = OpKind::kSend, .peer = 1 - rank, .piece = {0, elements - 1}, .source = {}},
        Op{.kind = OpKind::kRecv, .peer = 1 - rank, .piece = {1, elements - 1}, .source = {}}};
  }
  return schedule;
}

TEST(VerifierTest, AProofThatTakesTooMuchIsGivenUp) {
  const auto why = [](const Schedule& schedule, std::int64_t mostWork) {
    const auto report = verifySchedule(schedule, {.mostWork = mostWork});
    EXPECT_TRUE(report.ok() || report.status().code() == Code::kUnsupported);
    return report.ok() ? "" : report.status().message();
  };
  constexpr std::int64_t kSome = 1 << 24;
  EXPECT_EQ(why(creeping(20), kSome), "") << "it is wrong, and that is proved";
  EXPECT_THAT(why(creeping(std::int64_t{1} << 40), kSome),
              HasSubstr("more than 16 million steps, in the cutting of its data into pieces. Write "
                        "it with fewer operations"));
  // All write to the same elements, in lanes that nothing orders.
  RecordedSchedule meeting(2, 2000, 2);
  for (int lane = 0; lane < 2000; ++lane) {
    meeting.at(0, lane) = {Op{.kind = OpKind::kSend, .peer = 1, .piece = {0, 2}, .source = {}}};
    meeting.at(1, lane) = {Op{.kind = OpKind::kRecv, .peer = 0, .piece = {0, 2}, .source = {}}};
  }
  EXPECT_THAT(why(meeting, kSome), HasSubstr("in the search for operations that meet"));
  const auto ring = ringAllReduce(16, 1 << 12, 8);
  const auto whole = verifySchedule(*ring);
  ASSERT_TRUE(whole.ok() && whole->ok());
  EXPECT_EQ(why(*ring, whole->work), "");
  EXPECT_NE(why(*ring, whole->work - 1), "");
  EXPECT_THAT(why(*ring, 1000), HasSubstr("its proof takes too much"));
}

TEST(VerifierTest, TheProofOfAUsualScheduleIsFarFromTooMuch) {
  const auto work = [](int ranks, int segments) {
    const auto report = verifySchedule(*ringAllReduce(ranks, 1 << 16, segments));
    return report.ok() ? report->work : VerifyOptions().mostWork;
  };
  EXPECT_LT(work(64, 8), VerifyOptions().mostWork / 100);
}

TEST(VerifierTest, LongListsAreCutAndCounted) {
  const Result<VerifyReport> report =
      verifySchedule(RecordedSchedule(20, 1, 1), {.maxProblems = 3});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->problems.size(), 3u);
  EXPECT_EQ(report->moreProblems, 17);
}

}  // namespace
}  // namespace faultline::schedule
