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

TEST(EventReportTest, ASlowRailIsToldWhenItBeginsAndWhenItIsOver) {
  comm::EventLog log;
  EventReport report;
  log.degraded(2, {.rail = 1, .degraded = true, .share = 0.25, .when = now()});
  json message = nextMessage(report, log);
  ASSERT_EQ(message["degradations"].size(), 1u);
  EXPECT_EQ(message["degradations"][0]["peer"], 2);
  EXPECT_EQ(message["degradations"][0]["rail"], 1);
  EXPECT_EQ(message["degradations"][0]["degraded"], true);
  EXPECT_EQ(message["degradations"][0]["share"], 0.25);
  log.degraded(2, {.rail = 1, .degraded = false, .share = 1, .when = now()});
  message = nextMessage(report, log);
  ASSERT_EQ(message["degradations"].size(), 1u);
  EXPECT_EQ(message["degradations"][0]["degraded"], false);
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
