#include "harness/record/rail_record.h"

#include <gtest/gtest.h>

#include "run_record_case.h"

// What ranks tell of their rails, in the entry of the run.

namespace faultline::run {
namespace {

/// Rank 2 lost rail 0 to rank 1, 20 ms after the damage at 100 ms; back after 90 ms in all.
wire::Network failover(Bytes resentBytes = 0, int stall = 0, bool receiving = true) {
  wire::Network told;
  told.failovers.push_back({.peer = 1,
                            .rail = 0,
                            .cause = "path",
                            .where = "unknown",
                            .deadDirection = "unknown",
                            .sending = resentBytes > 0,
                            .receiving = receiving,
                            .detected = at(120),
                            .fenced = at(130),
                            .redelivered = at(190),
                            .resentBytes = resentBytes,
                            .receiveStall = stall * 1ms});
  told.failbacks = {{.peer = 1, .rail = 0, .at = at(400)}};
  told.degradations = {{.peer = 1, .rail = 0, .degraded = true, .share = 0.5, .at = at(410)},
                       {.peer = 1, .rail = 0, .degraded = false, .share = 1, .at = at(450)},
                       {.peer = 1, .rail = 1, .degraded = true, .share = 0.1, .at = at(420)}};
  told.counters = {{"chunks_sent", 7}, {"longest_receive_stall_us", 30}};
  return told;
}

class FailoverRecordTest : public RunRecordTest {
 protected:
  reports::Run done(const wire::Network& message, bool known = true) {
    RunRecord record(scenario_, planned_);
    record.started(kStart);
    record.events(2, message);
    record.events(3, {.counters = {{"chunks_sent", 5}, {"longest_receive_stall_us", 20}}});
    Observed observed;
    const auto damaged = [&](int rail, TimePoint before, TimePoint after) {
      observed.changes.faults.push_back(
          {.node = 1, .rail = rail, .changes = {{true, before, after}}});
    };
    if (known) damaged(0, at(100), at(100) + within_);
    if (otherDamaged_ >= 0) damaged(otherDamaged_, at(otherAt_), at(otherAt_));
    return record.finish(observed).run;
  }

  int otherDamaged_ = -1;
  int otherAt_ = 50;
  Duration within_{};  // the kernel took to do the fault
};

TEST_F(FailoverRecordTest, ThePauseLastsFromTheFaultToTheRedelivery) {
  const reports::Run run = done(failover());
  ASSERT_EQ(run.failovers.size(), 1u);
  const reports::Failover& failover = run.failovers[0];
  EXPECT_EQ(failover.rank, 2);
  EXPECT_EQ(failover.peer, 1);
  EXPECT_EQ(failover.verdict, "probes");
  EXPECT_EQ(failover.direction, "recv");
  EXPECT_EQ(failover.fault_ms, 100);
  EXPECT_EQ(failover.detected_ms, 120);
  EXPECT_EQ(failover.fenced_ms, 130);
  EXPECT_EQ(failover.resumed_ms, 190);
  EXPECT_EQ(failover.restored_ms, 400);
  EXPECT_EQ(failover.pause_ms, 90);
  ASSERT_EQ(run.failbacks.size(), 1u);
  EXPECT_EQ(run.failbacks[0].at_ms, 400);
  ASSERT_EQ(run.degradations.size(), 2u);
  EXPECT_EQ(run.degradations[0].at_ms, 410);
  EXPECT_EQ(run.degradations[0].until_ms, 450);
  EXPECT_EQ(run.degradations[0].share, 0.5);
  EXPECT_EQ(run.degradations[1].until_ms, std::nullopt);
  EXPECT_EQ(run.counters.at("chunks_sent"), 12) << "the sum of all ranks";
  EXPECT_EQ(run.counters.at("longest_receive_stall_us"), 30) << "the longest of all ranks";
}

TEST_F(FailoverRecordTest, MovingTheBytesOverWhatIsLeftIsNoPause) {
  // 400 Mbit/s carry 400e6 / 8 / 1000 * 0.957 = 47850 bytes of payload per millisecond.
  const reports::Run run = done(failover(478'500));
  EXPECT_EQ(run.failovers[0].direction, "both");
  EXPECT_NEAR(run.failovers[0].pause_ms, 90 - 10, 1e-9);
}

TEST_F(FailoverRecordTest, ARailThatIsDamagedTooMovesNothing) {
  scenario_.cluster.rails = 4;
  EXPECT_NEAR(done(failover(3 * 478'500)).failovers[0].pause_ms, 90 - 10, 1e-9);
  otherDamaged_ = 2;
  EXPECT_NEAR(done(failover(2 * 478'500)).failovers[0].pause_ms, 90 - 10, 1e-9);
  otherAt_ = 150;  // after the failure was seen, before all was delivered
  EXPECT_NEAR(done(failover(2 * 478'500)).failovers[0].pause_ms, 90 - 10, 1e-9);
  otherAt_ = 200;
  EXPECT_NEAR(done(failover(3 * 478'500)).failovers[0].pause_ms, 90 - 10, 1e-9);
}

TEST_F(FailoverRecordTest, AFaultThatTookLongToDoCountsFromWhenItWasDone) {
  for (const Duration within : {5ms, 6ms, 80ms}) {
    within_ = within;
    const reports::Failover found = done(failover(0, 40)).failovers.at(0);
    EXPECT_EQ(found.fault_ms, 100);
    EXPECT_EQ(found.fault_within_ms, toMilliseconds(within));
    EXPECT_EQ(found.timed(), within == 5ms);
    // Redelivered at 190 ms; a receive had stood still for 40.
    EXPECT_EQ(found.pause_ms, within == 5ms ? 90 : within == 6ms ? 84 : 40);
  }
}

TEST_F(FailoverRecordTest, AConnectionThatCarriedNothingHasNotPaused) {
  const reports::Run run = done(failover(0, 0, /*receiving=*/false));
  EXPECT_TRUE(run.failovers.empty());
  EXPECT_EQ(run.counters.at("failovers_idle"), 1);
  ASSERT_EQ(run.idle_failovers.size(), 1u) << "but it was found";
  EXPECT_EQ(run.idle_failovers[0].cause, "path");
}

TEST_F(FailoverRecordTest, TheLongestStallOfAReceiveCountsWhenItIsLonger) {
  EXPECT_EQ(done(failover(0, 140)).failovers[0].pause_ms, 140);
}

TEST_F(FailoverRecordTest, WithoutAKnownFaultThePauseBeginsWhenItWasSeen) {
  const reports::Run run = done(failover(), /*known=*/false);
  EXPECT_EQ(run.failovers[0].fault_ms, std::nullopt);
  EXPECT_EQ(run.failovers[0].pause_ms, 70);
}

TEST_F(FailoverRecordTest, OneThatDoesNotSayWhenItWasSeenIsExplainedByNoDamage) {
  wire::Network untimed = failover();
  untimed.failovers[0].detected.reset();
  const reports::Run run = done(untimed);
  ASSERT_EQ(run.failovers.size(), 1u);
  EXPECT_EQ(run.failovers[0].detected_ms, std::nullopt);
  EXPECT_EQ(run.failovers[0].fault_ms, std::nullopt);
  const auto noDamageIsKnown = [&] {
    RunRecord record(scenario_, planned_);
    record.started(kStart);
    record.events(2, failover());
    return record.finish({}).run;
  };
  EXPECT_EQ(noDamageIsKnown().failovers.at(0).fault_ms, std::nullopt);
}

TEST_F(RunRecordTest, WhatTwoRanksRecordedStandsInOneListPerField) {
  const wire::Trace trace{.kind = {"chunk_sent", "chunk_arrived"},
                          .peer = {1, 2},
                          .rail = {0, -1},
                          .at = {at(20), at(30)},
                          .length = {0ms, 1'500us},
                          .bytes = {65536, 7},
                          .number = {3, 4}};
  record_.events(0, {.trace = trace});
  record_.events(3, {.trace = trace});
  const reports::Telemetry all = record_.finish({}).run.telemetry;
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all.rank, (std::vector<int>{0, 0, 3, 3}));
  EXPECT_EQ(all.kind[1], "chunk_arrived");
  EXPECT_EQ(all.at_ms, (std::vector<double>{20, 30, 20, 30}));
  EXPECT_EQ(all.ms, (std::vector<double>{0, 1.5, 0, 1.5}));
  EXPECT_EQ(all.rail[3], -1);
  EXPECT_EQ(all.number[2], 3u);
}

TEST_F(RunRecordTest, WhatBeginsWhereAnotherEndsDoesNotOverlapItWhenRounded) {
  // Both rounded up apart, the first would end a microsecond after the second begins.
  const wire::Trace trace{.kind = {"chunk_sent", "chunk_sent"},
                          .peer = {1, 1},
                          .rail = {0, 0},
                          .at = {at(20) + 500ns, at(20) + 1'100ns},
                          .length = {600ns, 1'000ns},
                          .bytes = {1, 1},
                          .number = {1, 2}};
  record_.events(0, {.trace = trace});
  const reports::Telemetry all = record_.finish({}).run.telemetry;
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NEAR(all.at_ms[0] + all.ms[0], all.at_ms[1], 1e-9);
}

TEST_F(FailoverRecordTest, AFailoverIsRestoredByTheFirstFailbackOfItsRailWheneverItIsTold) {
  wire::Network early = failover();
  early.failbacks = {{.peer = 1, .rail = 0, .at = at(110)},   // before it was detected
                     {.peer = 1, .rail = 1, .at = at(150)},   // another rail
                     {.peer = 3, .rail = 0, .at = at(160)}};  // another peer
  record_.events(2, early);
  record_.events(3, {.failbacks = {{.peer = 1, .rail = 0, .at = at(170)}}});
  record_.events(2, {.failbacks = {{.peer = 1, .rail = 0, .at = at(300)}}});
  record_.events(2, {.failbacks = {{.peer = 1, .rail = 0, .at = at(500)}}});
  const reports::Run run = record_.finish({}).run;
  ASSERT_EQ(run.failovers.size(), 1u);
  EXPECT_EQ(run.failovers[0].restored_ms, 300);
  EXPECT_EQ(run.failbacks.size(), 6u);
}

TEST_F(FailoverRecordTest, OneThatIsNotRestoredSaysNothing) {
  wire::Network message = failover();
  message.failbacks.clear();
  EXPECT_EQ(done(message).failovers[0].restored_ms, std::nullopt);
}

TEST_F(FailoverRecordTest, ARunThatWasCutOffHasWhatWasToldUntilThen) {
  wire::Network end = failover();
  end.counters = {{"chunks_sent", 3}};
  record_.events(2, end);
  record_.events(2, {.counters = {{"chunks_sent", 8}}});
  record_.failed(kStart, reports::RunStatus::kFailed, "interrupted");
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.failovers.size(), 1u);
  EXPECT_EQ(run.counters.at("chunks_sent"), 8) << "the newest of the rank, not the sum";
}

TEST_F(FailoverRecordTest, CountersOfAllLivesOfAJobAdd) {
  record_.events(2, {.counters = {{"chunks_sent", 8}}});
  restart(700, 110, 800, 900);
  record_.events(2, {.counters = {{"chunks_sent", 3}}});
  EXPECT_EQ(record_.finish({}).run.counters.at("chunks_sent"), 11);
}

}  // namespace
}  // namespace faultline::run
