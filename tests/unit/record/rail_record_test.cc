#include "harness/record/rail_record.h"

#include <gtest/gtest.h>

#include "run_record_case.h"

// What ranks tell of their rails, in the entry of the run.

namespace faultline::run {
namespace {

/// Rank 2 lost rail 0 to rank 1, 20 ms after the damage at 100 ms; back after 90 ms in all.
json failover(int resentBytes = 0, double stall = 0, bool receiving = true) {
  return {{"failovers",
           {{{"peer", 1},
             {"rail", 0},
             {"cause", "path"},
             {"told", false},
             {"detected", moment(120)},
             {"fenced", moment(130)},
             {"redelivered", moment(190)},
             {"sending", resentBytes > 0},
             {"receiving", receiving},
             {"resent_bytes", resentBytes},
             {"receive_stall_ms", stall}}}},
          {"failbacks", {{{"peer", 1}, {"rail", 0}, {"at", moment(400)}}}},
          {"degradations",
           {{{"peer", 1}, {"rail", 0}, {"degraded", true}, {"share", 0.5}, {"at", moment(410)}},
            {{"peer", 1}, {"rail", 0}, {"degraded", false}, {"share", 1.0}, {"at", moment(450)}},
            {{"peer", 1}, {"rail", 1}, {"degraded", true}, {"share", 0.1}, {"at", moment(420)}}}},
          {"counters", {{"chunks_sent", 7}, {"longest_receive_stall_us", 30}}}};
}

class FailoverRecordTest : public RunRecordTest {
 protected:
  reports::Run done(const json& message, bool known = true) {
    RunRecord record(scenario_, planned_);
    record.started(kStart);
    record.events(2, message);
    record.events(3, {{"counters", {{"chunks_sent", 5}, {"longest_receive_stall_us", 20}}}});
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
  json untimed = failover();
  untimed["failovers"][0].erase("detected");
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
  const json trace{{"kind", {"chunk_sent", "chunk_arrived"}},
                   {"peer", {1, 2}},
                   {"rail", {0, -1}},
                   {"at", {moment(20), moment(30)}},
                   {"length", {0, 1'500'000}},
                   {"bytes", {65536, 7}},
                   {"number", {3, 4}}};
  record_.events(0, {{"trace", trace}});
  record_.events(3, {{"trace", trace}});
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
  const auto begin = at(20).time_since_epoch().count();
  // Both rounded up apart, the first would end a microsecond after the second begins.
  const json trace{{"kind", {"chunk_sent", "chunk_sent"}},
                   {"peer", {1, 1}},
                   {"rail", {0, 0}},
                   {"at", {begin + 500, begin + 1'100}},
                   {"length", {600, 1'000}},
                   {"bytes", {1, 1}},
                   {"number", {1, 2}}};
  record_.events(0, {{"trace", trace}});
  const reports::Telemetry all = record_.finish({}).run.telemetry;
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NEAR(all.at_ms[0] + all.ms[0], all.at_ms[1], 1e-9);
}

TEST_F(FailoverRecordTest, AFailoverIsRestoredByTheFirstFailbackOfItsRailWheneverItIsTold) {
  json early = failover();
  early["failbacks"] = {{{"peer", 1}, {"rail", 0}, {"at", moment(110)}},   // before it was detected
                        {{"peer", 1}, {"rail", 1}, {"at", moment(150)}},   // another rail
                        {{"peer", 3}, {"rail", 0}, {"at", moment(160)}}};  // another peer
  record_.events(2, early);
  record_.events(3, {{"failbacks", {{{"peer", 1}, {"rail", 0}, {"at", moment(170)}}}}});
  record_.events(2, {{"failbacks", {{{"peer", 1}, {"rail", 0}, {"at", moment(300)}}}}});
  record_.events(2, {{"failbacks", {{{"peer", 1}, {"rail", 0}, {"at", moment(500)}}}}});
  const reports::Run run = record_.finish({}).run;
  ASSERT_EQ(run.failovers.size(), 1u);
  EXPECT_EQ(run.failovers[0].restored_ms, 300);
  EXPECT_EQ(run.failbacks.size(), 6u);
}

TEST_F(FailoverRecordTest, OneThatIsNotRestoredSaysNothing) {
  json message = failover();
  message.erase("failbacks");
  EXPECT_EQ(done(message).failovers[0].restored_ms, std::nullopt);
}

TEST_F(FailoverRecordTest, ARunThatWasCutOffHasWhatWasToldUntilThen) {
  json end = failover();
  end["counters"] = {{"chunks_sent", 3}};
  record_.events(2, end);
  record_.events(2, {{"counters", {{"chunks_sent", 8}}}});
  record_.failed(kStart, reports::RunStatus::kFailed, "interrupted");
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.failovers.size(), 1u);
  EXPECT_EQ(run.counters.at("chunks_sent"), 8) << "the newest of the rank, not the sum";
}

TEST_F(FailoverRecordTest, CountersOfAllLivesOfAJobAdd) {
  record_.events(2, {{"counters", {{"chunks_sent", 8}}}});
  restart(700, 110, 800, 900);
  record_.events(2, {{"counters", {{"chunks_sent", 3}}}});
  EXPECT_EQ(record_.finish({}).run.counters.at("chunks_sent"), 11);
}

}  // namespace
}  // namespace faultline::run
