#include "resilient_ccl/comm/event_log.h"

#include <gtest/gtest.h>

namespace faultline::comm {
namespace {

using channel::Cause;
using channel::Where;

channel::Failover failoverOf(int rail, Cause cause = Cause::kPath) {
  channel::Failover failover;
  failover.rail = rail;
  failover.cause = cause;
  return failover;
}

TEST(EventLogTest, WhoGoesOnFromWhereItStoppedReadsEverythingOnce) {
  EventLog log;
  EventCursor cursor;
  int next = 0, read = 0;
  for (const int more : {3, 0, 1, 500}) {
    for (int i = 0; i < more; ++i) {
      log.failedOver(1, failoverOf(next++));
      log.failedBack(2, i, TimePoint{});
      log.failedBack(3, i, TimePoint{});
    }
    const CommunicatorEvents events = log.since(cursor);
    ASSERT_EQ(events.first.failovers, cursor.failovers);
    ASSERT_EQ(static_cast<int>(events.failovers.size()), more);
    ASSERT_EQ(static_cast<int>(events.failbacks.size()), 2 * more);
    for (const auto& event : events.failovers) EXPECT_EQ(event.failover.rail, read++);
    cursor.failovers += events.failovers.size();
    cursor.failbacks += events.failbacks.size();
  }
}

TEST(EventLogTest, NoMoreIsKeptThanTheBoundAndTheGapIsVisible) {
  constexpr int kMany = static_cast<int>(EventLog::kMostKept) + 10;
  EventLog log;
  for (int i = 0; i < kMany; ++i) log.failedOver(1, failoverOf(i));
  log.failedBack(1, 0, TimePoint{});
  const CommunicatorEvents events = log.since({});
  ASSERT_EQ(events.failovers.size(), EventLog::kMostKept);
  EXPECT_EQ(events.first.failovers, 10u);
  EXPECT_EQ(events.failovers.front().failover.rail, 10);
  EXPECT_EQ(events.first.failbacks, 0u);
  EXPECT_EQ(log.since({.failovers = kMany - 1, .failbacks = 1}).failovers.size(), 1u);
}

TEST(EventLogTest, TheLatestFailoverOfARailIsExplained) {
  EventLog log;
  log.failedOver(1, failoverOf(0));
  log.failedOver(1, failoverOf(0));
  log.failedOver(2, failoverOf(0));
  log.failedOver(1, failoverOf(1));
  log.explained(1, 0, Cause::kRemoteNic, Where::kRemote);
  log.explained(1, 1, Cause::kPath, Where::kBetween);
  log.explained(3, 0, Cause::kLocalNic, Where::kLocal);  // nothing is known of it
  const auto failovers = log.since({}).failovers;
  EXPECT_EQ(failovers[0].failover.cause, Cause::kPath);
  EXPECT_EQ(failovers[1].failover.cause, Cause::kRemoteNic);
  EXPECT_TRUE(failovers[1].failover.told);
  EXPECT_EQ(failovers[2].failover.where, Where::kUnknown);
  EXPECT_EQ(failovers[3].failover.where, Where::kBetween);
  log.explained(1, 0, Cause::kPath, Where::kBetween);
  EXPECT_EQ(log.since({}).failovers[1].failover.cause, Cause::kRemoteNic) << "known already";
}

TEST(EventLogTest, TheLatestIsTheOneThatWasDetectedLast) {
  EventLog log;
  channel::Failover earlier = failoverOf(0), later = failoverOf(0);
  earlier.cause = Cause::kRail;
  earlier.detected = TimePoint{} + 1s;
  later.detected = TimePoint{} + 2s;
  // Its chunks went down with the next connection, too: it is over after that one.
  log.failedOver(1, later);
  log.failedOver(1, earlier);
  log.explained(1, 0, Cause::kLocalNic, Where::kLocal);
  const auto failovers = log.since({}).failovers;
  EXPECT_EQ(failovers[0].failover.cause, Cause::kLocalNic);
  EXPECT_EQ(failovers[1].failover.cause, Cause::kRail);
}

}  // namespace
}  // namespace faultline::comm
