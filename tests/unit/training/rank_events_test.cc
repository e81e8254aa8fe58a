#include "harness/workload/rank_events.h"

#include <gtest/gtest.h>

#include <limits>

namespace faultline::workload {
namespace {

channel::Failover failoverOf(int rail, channel::Cause cause) {
  channel::Failover failover;
  failover.rail = rail;
  failover.cause = cause;
  failover.detected = now();
  return failover;
}

wire::Network nextMessage(EventReport& report, const comm::EventLog& log, bool last = false) {
  return report.takeNew(log.since(report.cursor()), last);
}

TEST(EventReportTest, EverythingIsToldOnceAndWhatIsBeingExplainedWaits) {
  comm::EventLog log;
  EventReport report;
  log.failedOver(1, failoverOf(0, channel::Cause::kRail));
  log.failedOver(1, failoverOf(1, channel::Cause::kPath));
  log.failedOver(1, failoverOf(2, channel::Cause::kRail));
  log.failedBack(1, 0, now());
  wire::Network message = nextMessage(report, log);
  ASSERT_EQ(message.failovers.size(), 1u) << "the path of the second is still asked about";
  EXPECT_EQ(message.failovers[0].rail, 0);
  EXPECT_EQ(message.failbacks.size(), 1u);

  log.explained(1, 1, channel::Cause::kRemoteNic, channel::Where::kRemote);
  message = nextMessage(report, log);
  ASSERT_EQ(message.failovers.size(), 2u);
  EXPECT_EQ(message.failovers[0].cause, "remote_nic");
  EXPECT_EQ(message.failovers[1].rail, 2);
  EXPECT_TRUE(message.failbacks.empty());

  log.failedOver(1, failoverOf(3, channel::Cause::kPath));
  EXPECT_EQ(nextMessage(report, log, /*last=*/true).failovers.size(), 1u);
  EXPECT_TRUE(nextMessage(report, log).failovers.empty());
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
  const wire::Network message = nextMessage(report, second);
  ASSERT_EQ(message.failovers.size(), 1u);
  EXPECT_EQ(message.failovers[0].peer, 3);
  ASSERT_EQ(message.failbacks.size(), 1u) << "numbers begin anew";
  EXPECT_EQ(message.failbacks[0].peer, 3);
  EXPECT_EQ(message.counters.at("bytes_sent"), 200);
  EXPECT_EQ(message.counters.at("datagrams_rejected"), 2);
  EXPECT_EQ(report.bytesSent(second.since(report.cursor())), 200u);
}

TEST(EventReportTest, ASlowRailIsToldWhenItBeginsAndWhenItIsOver) {
  comm::EventLog log;
  EventReport report;
  log.degraded(2, {.rail = 1, .degraded = true, .share = 0.25, .when = now()});
  wire::Network message = nextMessage(report, log);
  ASSERT_EQ(message.degradations.size(), 1u);
  EXPECT_EQ(message.degradations[0].peer, 2);
  EXPECT_EQ(message.degradations[0].rail, 1);
  EXPECT_EQ(message.degradations[0].degraded, true);
  EXPECT_EQ(message.degradations[0].share, 0.25);
  log.degraded(2, {.rail = 1, .degraded = false, .share = 1, .when = now()});
  message = nextMessage(report, log);
  ASSERT_EQ(message.degradations.size(), 1u);
  EXPECT_EQ(message.degradations[0].degraded, false);
}

TEST(EventReportTest, WhatWasForgottenIsCounted) {
  comm::EventLog log;
  EventReport report;
  for (std::size_t i = 0; i < comm::EventLog::kMostKept + 7; ++i) log.failedBack(1, 0, now());
  wire::Network message = nextMessage(report, log);
  EXPECT_EQ(message.failbacks.size(), comm::EventLog::kMostKept);
  EXPECT_EQ(message.counters.at("events_forgotten"), 7);
  EXPECT_EQ(nextMessage(report, log).counters.at("events_forgotten"), 7);
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
  const wire::Network message = nextMessage(report, log);
  ASSERT_EQ(message.plans.size(), 1u);
  const wire::Plan& plan = message.plans[0];
  EXPECT_EQ(plan.at, TimePoint(5s));
  EXPECT_EQ(plan.epoch, 2u);
  EXPECT_EQ(plan.operation, 17u);
  EXPECT_EQ(plan.elements, 1000);
  EXPECT_EQ(plan.bytes, 2000);
  EXPECT_EQ(plan.collective, "all_gather");
  EXPECT_EQ(plan.algorithm, "optcc");
  EXPECT_EQ(plan.segments, 32);
  EXPECT_EQ(plan.tried, true);
  ASSERT_EQ(plan.health.size(), 2u);
  EXPECT_EQ(plan.health[0].send, 1);
  EXPECT_EQ(plan.health[1].send, 0.5);
  EXPECT_EQ(plan.health[1].receive, 0.25);
  EXPECT_DOUBLE_EQ(plan.predictedMs.value_or(0), 300);
  EXPECT_DOUBLE_EQ(plan.ringMs.value_or(0), 500);
  EXPECT_DOUBLE_EQ(plan.boundMs.value_or(0), 250);
  EXPECT_EQ(plan.hash, "ffffffffffffffff") << "more than a number of JSON holds everywhere";
  EXPECT_DOUBLE_EQ(plan.latencyUs, 40);
  EXPECT_DOUBLE_EQ(plan.perMessageUs, 3);
  EXPECT_DOUBLE_EQ(plan.bandwidth, 5e7);
  EXPECT_TRUE(nextMessage(report, log).plans.empty());
}

TEST(EventReportTest, APredictionThatTheModelDoesNotHaveIsNone) {
  comm::EventLog log;
  EventReport report;
  comm::PlanEvent event;
  event.plan.predicted = event.plan.ring = std::numeric_limits<double>::infinity();
  event.plan.bound = 0.25;
  log.planned(event);
  const wire::Network message = nextMessage(report, log);
  ASSERT_EQ(message.plans.size(), 1u);
  EXPECT_FALSE(message.plans[0].predictedMs);
  EXPECT_FALSE(message.plans[0].ringMs);
  EXPECT_EQ(message.plans[0].boundMs, 250);
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
  const wire::Network message = nextMessage(report, log);
  ASSERT_EQ(message.portTests.size(), 2u);
  const wire::PortTest& told = message.portTests[0];
  EXPECT_EQ(told.at, TimePoint(5s));
  EXPECT_EQ(told.communicator, 1u);
  EXPECT_EQ(told.operation, 40u);
  EXPECT_EQ(told.took, 120ms);
  EXPECT_EQ(told.rounds, 2);
  EXPECT_EQ(told.lateness, 1.25);
  EXPECT_TRUE(told.complete);
  EXPECT_TRUE(told.changed);
  ASSERT_EQ(told.slowPaths.size(), 1u);
  EXPECT_EQ(told.slowPaths[0].from, 1);
  EXPECT_EQ(told.slowPaths[0].to, 3);
  EXPECT_EQ(told.slowPaths[0].share, 0.5);
  EXPECT_FALSE(message.portTests[1].lateness);
  EXPECT_TRUE(nextMessage(report, log).portTests.empty());
}

}  // namespace
}  // namespace faultline::workload
