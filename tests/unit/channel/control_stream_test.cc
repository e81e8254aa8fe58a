#include "resilient_ccl/channel/control_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace faultline::channel {
namespace {

TEST(ControlStreamTest, ARepetitionIsDroppedAndSoIsWhatCannotBeRemembered) {
  ControlStream stream;
  EXPECT_TRUE(stream.accept(2));
  EXPECT_FALSE(stream.accept(2));
  EXPECT_TRUE(stream.accept(1));
  EXPECT_FALSE(stream.accept(1));
  EXPECT_FALSE(stream.accept(0));
  EXPECT_FALSE(stream.accept(1'000'000));
  EXPECT_EQ(stream.received().base, 2u);
}

TEST(ControlStreamTest, ARecordIsRepeatedUntilItsReceipt) {
  ControlStream stream;
  stream.send(RecordType::kGrant, {}, false);
  TimePoint now(1s);
  const auto sent = [&] {
    int count = 0;
    stream.collect(now, 0, [&](const Record&, int, bool) { ++count; });
    return count;
  };
  for (int attempt = 0; attempt < 20; ++attempt) {
    EXPECT_EQ(sent(), 1);
    EXPECT_EQ(sent(), 0) << "before its time";
    EXPECT_LE(stream.nextDeadline(), now + ControlStream::kLongestPause);
    now = stream.nextDeadline();
  }
  stream.acknowledged({.base = 77, .beyond = 0});  // a lie
  EXPECT_TRUE(stream.awaits(RecordType::kGrant));
  EXPECT_FALSE(stream.awaits(RecordType::kNote));
  stream.acknowledged({.base = 1, .beyond = 0});
  EXPECT_FALSE(stream.awaits(RecordType::kGrant));
  EXPECT_EQ(sent(), 0);
}

TEST(ControlStreamTest, EachRepetitionIsOneTurnFurtherThanTheLast) {
  ControlStream stream;
  stream.send(RecordType::kGrant, {}, false);
  TimePoint now(1s);
  std::vector<int> turns;
  for (const int firstTurn : {5, 0, 3, 3}) {  // that of others, but for the first
    stream.collect(now, firstTurn, [&](const Record&, int turn, bool) { turns.push_back(turn); });
    now = stream.nextDeadline();
  }
  EXPECT_EQ(turns, (std::vector{5, 6, 7, 8}));
}

TEST(ControlStreamTest, AnUrgentRecordDoesNotWaitBehindOthers) {
  ControlStream stream;
  for (int i = 0; i < 200; ++i) stream.send(RecordType::kGrant, {}, false);
  const TimePoint now(1s);
  std::vector<RecordType> sent;
  const auto collect = [&] {
    sent.clear();
    stream.collect(now, 0, [&](const Record& record, int, bool) { sent.push_back(record.type); });
  };
  collect();
  EXPECT_EQ(sent.size(), Receipt::kReach + 1 - ControlStream::kReserved);
  EXPECT_GT(stream.nextDeadline(), now) << "nothing else may leave";
  stream.send(RecordType::kRailFailed, {}, true);
  EXPECT_LE(stream.nextDeadline(), now);
  collect();
  EXPECT_EQ(sent, std::vector{RecordType::kRailFailed});
}

TEST(ControlStreamTest, NothingLeavesThatTheOtherEndCouldNotRemember) {
  ControlStream sender, receiver;
  for (int i = 0; i < 200; ++i) {
    sender.send(RecordType::kGrant, {}, false);
    sender.send(RecordType::kNote, {}, true);
  }
  int arrived = 0;
  for (TimePoint now(1s); sender.nextDeadline() < TimePoint::max();
       now += ControlStream::kLongestPause) {
    sender.collect(now, 0, [&](const Record& record, int, bool) {
      EXPECT_TRUE(receiver.accept(record.sequence));
      ++arrived;
    });
    sender.acknowledged(receiver.received());
  }
  EXPECT_EQ(arrived, 400);
}

}  // namespace
}  // namespace faultline::channel
