#include "harness/workload/rank_events.h"

#include <gtest/gtest.h>

namespace faultline::workload {
namespace {

using nlohmann::json;

channel::Failover failoverOf(int rail, channel::Cause cause) {
  channel::Failover failover;
  failover.rail = rail;
  failover.cause = cause;
  failover.detected = now();
  return failover;
}

json nextMessage(EventReport& report, const comm::EventLog& log, bool last = false) {
  json message;
  report.addNew(message, log.since(report.cursor()), last);
  return message;
}

TEST(EventReportTest, EverythingIsToldOnceAndWhatIsBeingExplainedWaits) {
  comm::EventLog log;
  EventReport report;
  log.failedOver(1, failoverOf(0, channel::Cause::kRail));
  log.failedOver(1, failoverOf(1, channel::Cause::kPath));
  log.failedOver(1, failoverOf(2, channel::Cause::kRail));
  log.failedBack(1, 0, now());
  json message = nextMessage(report, log);
  ASSERT_EQ(message["failovers"].size(), 1u) << "the path of the second is still asked about";
  EXPECT_EQ(message["failovers"][0]["rail"], 0);
  EXPECT_EQ(message["failbacks"].size(), 1u);

  log.explained(1, 1, channel::Cause::kRemoteNic, channel::Where::kRemote);
  message = nextMessage(report, log);
  ASSERT_EQ(message["failovers"].size(), 2u);
  EXPECT_EQ(message["failovers"][0]["cause"], "remote_nic");
  EXPECT_EQ(message["failovers"][1]["rail"], 2);
  EXPECT_TRUE(message["failbacks"].empty());

  log.failedOver(1, failoverOf(3, channel::Cause::kPath));
  EXPECT_EQ(nextMessage(report, log, /*last=*/true)["failovers"].size(), 1u);
  EXPECT_TRUE(nextMessage(report, log)["failovers"].empty());
}

TEST(EventReportTest, AnotherCommunicatorGoesOnInTheRanksAndCountersOfTheFirst) {
  comm::EventLog first, second;
  EventReport report;
  fabric::FabricCounters counters;
  counters.bytesSent = 100;
  counters.datagramsRejected = 1;
  first.counted(counters);
  first.failedBack(1, 0, now());
  nextMessage(report, first, /*last=*/true);
  report.changeCommunicator(first.since(report.cursor()), {0, 3});
  second.counted(counters);
  second.failedOver(1, failoverOf(0, channel::Cause::kRail));
  second.failedBack(1, 0, now());
  const json message = nextMessage(report, second);
  ASSERT_EQ(message["failovers"].size(), 1u);
  EXPECT_EQ(message["failovers"][0]["peer"], 3);
  ASSERT_EQ(message["failbacks"].size(), 1u) << "numbers begin anew";
  EXPECT_EQ(message["failbacks"][0]["peer"], 3);
  EXPECT_EQ(message["counters"]["bytes_sent"], 200);
  EXPECT_EQ(message["counters"]["datagrams_rejected"], 2);
  EXPECT_EQ(report.bytesSent(second.since(report.cursor())), 200u);
}

TEST(EventReportTest, WhatWasForgottenIsCounted) {
  comm::EventLog log;
  EventReport report;
  for (std::size_t i = 0; i < comm::EventLog::kMostKept + 7; ++i) log.failedBack(1, 0, now());
  json message = nextMessage(report, log);
  EXPECT_EQ(message["failbacks"].size(), comm::EventLog::kMostKept);
  EXPECT_EQ(message["counters"]["events_forgotten"], 7);
  EXPECT_EQ(nextMessage(report, log)["counters"]["events_forgotten"], 7);
}

}  // namespace
}  // namespace faultline::workload
