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

TEST(EventReportTest, APlanIsToldOnceWithWhatItWasMadeFor) {
  comm::EventLog log;
  EventReport report;
  comm::PlanEvent event;
  event.when = TimePoint(5s);
  event.communicator = 1;
  event.epoch = 2;
  event.operation = 17;
  event.elements = 1000;
  event.elementSize = 2;
  event.health = {{}, {512, 256}};
  event.tried = true;
  event.link = {.latency = 40e-6, .perMessage = 3e-6, .bandwidth = 5e7};
  event.collective = schedule::Collective::kAllGather;
  event.plan = {.algorithm = "optcc",
                .segments = 32,
                .predicted = 0.3,
                .ring = 0.5,
                .bound = 0.25,
                .candidates = {},
                .hash = 0xffffffffffffffff};
  log.planned(event);
  const json message = nextMessage(report, log);
  ASSERT_EQ(message["plans"].size(), 1u);
  const json& plan = message["plans"][0];
  EXPECT_EQ(plan["at"], 5'000'000'000);
  EXPECT_EQ(plan["epoch"], 2);
  EXPECT_EQ(plan["operation"], 17);
  EXPECT_EQ(plan["elements"], 1000);
  EXPECT_EQ(plan["bytes"], 2000);
  EXPECT_EQ(plan["collective"], "all_gather");
  EXPECT_EQ(plan["algorithm"], "optcc");
  EXPECT_EQ(plan["segments"], 32);
  EXPECT_EQ(plan["tried"], true);
  EXPECT_EQ(plan["health"], json({{1.0, 1.0}, {0.5, 0.25}})) << "send, receive";
  EXPECT_DOUBLE_EQ(plan["predicted_ms"], 300);
  EXPECT_DOUBLE_EQ(plan["ring_ms"], 500);
  EXPECT_DOUBLE_EQ(plan["bound_ms"], 250);
  EXPECT_EQ(plan["hash"], "ffffffffffffffff") << "more than a number of JSON holds everywhere";
  EXPECT_DOUBLE_EQ(plan["latency_us"], 40);
  EXPECT_DOUBLE_EQ(plan["per_message_us"], 3);
  EXPECT_DOUBLE_EQ(plan["bandwidth"], 5e7);
  EXPECT_TRUE(nextMessage(report, log)["plans"].empty());
}

TEST(EventReportTest, ATestOfThePortsIsToldOnce) {
  comm::EventLog log;
  EventReport report;
  comm::PortTestEvent event{.communicator = 1,
                            .report = {.test = 3,
                                       .operation = 40,
                                       .begun = TimePoint(5s),
                                       .took = 120ms,
                                       .rounds = 2,
                                       .lateness = 1.25,
                                       .complete = true,
                                       .changed = true,
                                       .slowPaths = {{.from = 1, .to = 3, .rate = 0.5}}}};
  log.tested(event);
  event.report.lateness = std::nullopt;
  log.tested(event);
  const json message = nextMessage(report, log);
  ASSERT_EQ(message["port_tests"].size(), 2u);
  EXPECT_EQ(message["port_tests"][0],
            json({{"at", 5'000'000'000},
                  {"communicator", 1},
                  {"operation", 40},
                  {"ms", 120.0},
                  {"rounds", 2},
                  {"lateness", 1.25},
                  {"complete", true},
                  {"changed", true},
                  {"slow_paths", {{{"from", 1}, {"to", 3}, {"share", 0.5}}}}}));
  EXPECT_TRUE(message["port_tests"][1]["lateness"].is_null());
  EXPECT_TRUE(nextMessage(report, log)["port_tests"].empty());
}

}  // namespace
}  // namespace faultline::workload
