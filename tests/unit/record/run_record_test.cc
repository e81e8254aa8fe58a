#include "harness/record/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "harness/analysis/speed_bound.h"
#include "run_record_case.h"

namespace faultline::run {
namespace {

using reports::RunStatus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST_F(RunRecordTest, ThoseThatAreLeftGoOnAndDoAsMuchLess) {
  iteration(0, 0, 100);
  begin(1, 100);
  // Rank 2 of four is gone; the others are told one after the other.
  for (const int rank : {0, 1, 3}) {
    record_.shrunk(
        rank, {.noticed = at(150 + rank), .at = at(400 + rank), .ranks = {0, 1, 3}, .iteration = 1},
        at(140));
  }
  for (const int rank : {0, 1, 3}) {
    record_.iterationBegan(rank, {.iteration = 1, .at = at(410)});
    record_.iterationEnded(rank, {.iteration = 1, .at = at(500)});
  }
  const reports::Run run = record_.finish({}).run;
  ASSERT_EQ(run.shrinks.size(), 1u);
  EXPECT_EQ(run.shrinks[0].fault_ms, 140);
  EXPECT_EQ(run.shrinks[0].noticed_ms, 150);
  EXPECT_EQ(run.shrinks[0].resumed_ms, 403);
  EXPECT_EQ(run.shrinks[0].ranks, 3);
  EXPECT_EQ(run.shrinks[0].missing, std::vector<int>{2});
  ASSERT_EQ(run.iterations.size(), 2u);
  EXPECT_EQ(run.iterations[1].ms, 400) << "with all that it took to go on";
  EXPECT_NEAR(run.throughput->value, 1.75 / 0.5, 1e-9);
}

/// What four ranks tell that become three, one after the other: each its own, in its order. Rank 2,
/// which is lost, and rank 3 are in iteration 1 when the others have ended it.
std::vector<std::vector<std::function<void(RunRecord&)>>> toldByShrinkingRanks() {
  std::vector<std::vector<std::function<void(RunRecord&)>>> told(4);
  for (int rank = 0; rank < 4; ++rank) {
    const auto say = [&](auto what) {
      told[static_cast<std::size_t>(rank)].push_back([=](RunRecord& to) { what(to, rank); });
    };
    const auto sayIteration = [&](int iteration, int from, std::optional<int> to) {
      say([=](RunRecord& record, int who) {
        record.iterationBegan(who, {.iteration = iteration, .at = at(from + who)});
      });
      if (!to) return;
      say([=](RunRecord& record, int who) {
        record.iterationEnded(who, {.iteration = iteration, .at = at(*to + who)});
      });
    };
    const bool ended = rank < 2;
    sayIteration(0, 0, 90);
    sayIteration(1, 100, ended ? std::optional(190) : std::nullopt);
    if (ended) sayIteration(2, 200, std::nullopt);
    if (rank == 2) continue;
    say([](RunRecord& record, int who) {
      record.shrunk(
          who, {.noticed = at(260 - who), .at = at(400 - who), .ranks = {0, 1, 3}, .iteration = 2},
          at(250 - who));
    });
    sayIteration(2, 410, 500);
    sayIteration(3, 510, 600);
  }
  return told;
}

TEST_F(RunRecordTest, OfThoseThatAreLeftTheSameIsKnownInWhateverOrderTheyAreHeard) {
  const auto heard = [&](unsigned seed) {
    RunRecord record(scenario_, planned_);
    record.started(kStart);
    const auto told = toldByShrinkingRanks();
    std::vector<std::size_t> turns;
    for (std::size_t rank = 0; rank < told.size(); ++rank) {
      turns.insert(turns.end(), told[rank].size(), rank);
    }
    std::mt19937 random(seed);
    std::ranges::shuffle(turns, random);
    std::vector<std::size_t> next(told.size());
    for (const std::size_t rank : turns) told[rank][next[rank]++](record);
    return record.finish({}).run;
  };
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const reports::Run run = heard(seed);
    ASSERT_EQ(run.shrinks.size(), 1u);
    EXPECT_EQ(run.shrinks[0].fault_ms, 247);
    EXPECT_EQ(run.shrinks[0].noticed_ms, 257);
    EXPECT_EQ(run.shrinks[0].resumed_ms, 400);
    EXPECT_EQ(run.counters.at("longest_receive_stall_us"), 10'000);
    std::vector<std::pair<double, double>> iterations;
    for (const reports::Iteration& one : run.iterations) {
      iterations.emplace_back(one.start_ms, one.start_ms + one.ms);
    }
    EXPECT_THAT(iterations,
                ElementsAre(Pair(0, 93), Pair(100, 400), Pair(200, 503), Pair(510, 603)));
    EXPECT_NEAR(run.throughput->value, (1 + 3 * 0.75) / (0.093 + 0.3 + 0.303 + 0.093), 1e-9);
  }
}

TEST_F(RunRecordTest, WhoIsExcludedIsToldWithItsDeadPorts) {
  iteration(0, 0, 100);
  record_.excluded(2, {.at = at(150), .rails = {1, 3}});
  const reports::Run run = record_.finish({}).run;
  ASSERT_EQ(run.exclusions.size(), 1u);
  EXPECT_EQ(run.exclusions[0].rank, 2);
  EXPECT_EQ(run.exclusions[0].at_ms, 150);
  EXPECT_EQ(run.exclusions[0].rails, (std::vector{1, 3}));
}

TEST_F(RunRecordTest, ThroughputCountsIterationsAndCheckpointsButNotTheGapsBetween) {
  begin(0, 0);
  end(0, 60, 15);
  iteration(1, 100, 160);
  iteration(2, 500, 565);
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.status, RunStatus::kOk);
  EXPECT_EQ(run.block, 1);
  EXPECT_TRUE(run.faulted);
  ASSERT_EQ(run.iterations.size(), 3u);
  EXPECT_EQ(run.iterations[1].start_ms, 100);
  EXPECT_EQ(run.iterations[1].ms, 60) << "first begin to last end";
  EXPECT_EQ(run.checked_elements, 3 * ranks() * 100);
  EXPECT_EQ(run.duration_ms, 565);
  EXPECT_EQ(run.checkpoint_ms, 15);
  EXPECT_NEAR(run.throughput->value, 3 / 0.200, 1e-9);
  EXPECT_EQ(run.throughput->unit, "iterations/s");
}

TEST_F(RunRecordTest, WhatRanksHoldIsWhatTheirLastMessageSays) {
  for (const int files : {31, 33}) {
    record_.iterationEnded(2, {.resources = wire::Resources{.memoryStart = 100,
                                                            .memoryEnd = 150,
                                                            .memoryMax = 170,
                                                            .filesStart = 30,
                                                            .filesEnd = files,
                                                            .filesMax = 34}});
  }
  record_.iterationEnded(3, {});  // could not look
  const reports::Run run = record_.finish({}).run;
  ASSERT_EQ(run.resources.size(), 1u);
  const reports::ResourceUse& use = run.resources[0];
  EXPECT_EQ(use.rank, 2);
  EXPECT_EQ(use.memory_start_bytes, 100);
  EXPECT_EQ(use.memory_end_bytes, 150);
  EXPECT_EQ(use.memory_max_bytes, 170);
  EXPECT_EQ(use.open_files_start, 30);
  EXPECT_EQ(use.open_files_end, 33);
  EXPECT_EQ(use.open_files_max, 34);
}

TEST_F(RunRecordTest, ARestartCostsWhatWasLostWaitedForLoadedAndDoneAgain) {
  for (int i = 0; i < 4; ++i) iteration(i, 100 * i, 100 * i + 60);
  begin(4, 400);
  restart(1000, 430, 1500, 1800);
  for (int i = 2; i < 10; ++i) iteration(i, 2000 + 100 * i, 2060 + 100 * i);
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.status, RunStatus::kHung);
  EXPECT_TRUE(completed(run));
  EXPECT_THAT(run.message, HasSubstr("in the 470 ms before the watchdog"));
  ASSERT_EQ(run.restarts.size(), 1u);
  const reports::Restart& restart = run.restarts[0];
  EXPECT_EQ(restart.fault_ms, 430);
  EXPECT_EQ(restart.hang_ms, 570);
  EXPECT_EQ(restart.isolate_ms, 500);
  EXPECT_EQ(restart.load_ms, 300);
  EXPECT_EQ(restart.cut_iteration, 4);
  EXPECT_EQ(restart.checkpoint_iteration, 1);
  EXPECT_EQ(restart.lost_iterations, 3) << "2, 3 and the one that was cut off";
  EXPECT_EQ(restart.lost_ms, 60 + 60 + 30);
  EXPECT_EQ(restart.unscaled_total_ms, 600'000 + 300 + 150);
  EXPECT_EQ(run.counters.at("payload_bytes_while_hung"), 0);
  const auto interrupted = std::ranges::find(run.iterations, 4, &reports::Iteration::index);
  EXPECT_EQ(interrupted->start_ms, 400) << "its first begin";
  EXPECT_EQ(interrupted->ms, 2060) << "until its final end";
  EXPECT_EQ(interrupted->attempts, 2);
  EXPECT_EQ(std::ranges::count(run.iterations, 2, &reports::Iteration::attempts), 1);
  EXPECT_EQ(run.counters.at("longest_receive_stall_us"), 570'000) << "killed ranks tell no stall";
  EXPECT_FALSE(run.unfinished);
  // Ten useful iterations in 12 executions of 60 ms and 400 to 1800 ms of the restart.
  EXPECT_NEAR(run.throughput->value, 10 / (12 * 0.060 + 1.400), 1e-9);
}

TEST_F(RunRecordTest, EveryRestartCountsItsOwnLossesOnly) {
  for (int i = 0; i < 8; ++i) iteration(i, 100 * i, 100 * i + 60);
  begin(8, 800);
  restart(1400, 820, 1500, 1600);
  iteration(5, 2000, 2060);
  begin(6, 2100);
  restart(2700, 2110, 2800, 2900);
  for (int i = 5; i < 10; ++i) iteration(i, 3000 + 100 * i, 3060 + 100 * i);
  const reports::Run run = record_.finish({}).run;
  ASSERT_EQ(run.restarts.size(), 2u);
  EXPECT_EQ(run.restarts[0].lost_iterations, 4) << "5, 6, 7, 8";
  EXPECT_EQ(run.restarts[0].lost_ms, 3 * 60 + 20);
  EXPECT_EQ(run.restarts[1].fault_ms, 2110) << "its own fault and not the first";
  EXPECT_EQ(run.restarts[1].hang_ms, 590);
  EXPECT_EQ(run.restarts[1].lost_iterations, 2) << "5 and 6; 7 and 8 were lost before";
  EXPECT_EQ(run.restarts[1].lost_ms, 60 + 10);
  EXPECT_NEAR(run.throughput->value, 10 / (14 * 0.060 + 0.800 + 0.800), 1e-9);
}

TEST_F(RunRecordTest, AnAttemptThatCompletesNothingStillSaysWhereItTookUp) {
  for (int i = 0; i < 3; ++i) iteration(i, 100 * i, 100 * i + 60);
  begin(3, 300);
  restart(900, 310, 1000, 1100);
  begin(2, 1200);
  restart(1800, 1210, 1900, 2000);
  for (int i = 0; i < 10; ++i) iteration(i, 3000 + 100 * i, 3060 + 100 * i);
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.restarts[0].lost_iterations, 2) << "2 and 3";
  EXPECT_EQ(run.restarts[1].lost_iterations, 3) << "the older checkpoint had to do: 0, 1, 2";
}

TEST_F(RunRecordTest, AHangBetweenTwoIterationsCostsTheTimeSinceTheFault) {
  iteration(0, 0, 60);
  restart(700, 80, 800, 900);
  for (int i = 1; i < 10; ++i) iteration(i, 1000 + 100 * i, 1060 + 100 * i);
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.restarts[0].cut_iteration, std::nullopt);
  EXPECT_EQ(run.restarts[0].lost_iterations, 0);
  EXPECT_EQ(run.restarts[0].lost_ms, 0);
  EXPECT_EQ(run.iterations[1].start_ms, 80);
  EXPECT_EQ(run.iterations[1].ms, 1160 - 80) << "the job stood, whatever it was between";
  EXPECT_NEAR(run.throughput->value, 10 / (10 * 0.060 + 0.820), 1e-9);
}

TEST_F(RunRecordTest, AnAttemptThatDiesWhileLoadingBelongsToTheSameRestart) {
  iteration(0, 0, 60);
  begin(1, 100);
  record_.crashed("rank 1: killed");
  record_.cutOff(at(150), at(120));
  record_.repaired(at(300));
  record_.cutOff(at(350), at(340));
  record_.repaired(at(500));
  record_.reloaded(at(600));
  for (int i = 0; i < 10; ++i) iteration(i, 1000 + 100 * i, 1060 + 100 * i);
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.status, RunStatus::kOk) << "died, but never hung";
  EXPECT_THAT(run.message, HasSubstr("rank 1: killed"));
  ASSERT_EQ(run.restarts.size(), 1u);
  EXPECT_EQ(run.restarts[0].hang_ms, 30);
  EXPECT_EQ(run.restarts[0].isolate_ms, 350);
  EXPECT_EQ(run.restarts[0].load_ms, 100);
  EXPECT_NEAR(run.throughput->value, 10 / (11 * 0.060 + 0.500), 1e-9);
}

TEST_F(RunRecordTest, ARunThatDidNotEndHasNoThroughputAndIsNotCompleted) {
  iteration(0, 0, 60);
  begin(1, 100);
  restart(700, 110, 800, 900);
  record_.failed(at(2000), RunStatus::kHung, "not over within the deadline");
  const reports::Run run = record_.finish({}).run;
  EXPECT_EQ(run.status, RunStatus::kFailed);
  EXPECT_FALSE(completed(run));
  EXPECT_EQ(run.throughput, std::nullopt);
  EXPECT_EQ(run.message, "not over within the deadline");
  EXPECT_EQ(run.duration_ms, 2000) << "and not until its last iteration ended";
  ASSERT_TRUE(run.unfinished);
  EXPECT_EQ(run.unfinished->index, 1);
  EXPECT_EQ(run.unfinished->start_ms, 100);
  EXPECT_EQ(run.unfinished->ms, 1900);
  EXPECT_EQ(run.restarts[0].unscaled_total_ms, std::nullopt) << "nobody knows: it never went on";
}

TEST_F(RunRecordTest, AFailoverThatWasNeverOverHasPausedUntilTheJobGaveUp) {
  begin(0, 0);
  wire::Failover failover{.peer = 1, .sending = true, .detected = at(50)};
  record_.events(0, {.failovers = {failover}});
  failover.redelivered = at(60);
  record_.events(2, {.failovers = {failover}});
  record_.failed(at(5000), RunStatus::kFailed, "rank 0 gave up");
  const reports::Run run = record_.finish({}).run;
  ASSERT_EQ(run.failovers.size(), 2u);
  EXPECT_EQ(run.failovers[0].pause_ms, 4950);
  EXPECT_LT(run.failovers[1].pause_ms, 11) << "it was over";
}

TEST_F(RunRecordTest, RanksThatWaitedForOnesThatAreGoneStalledUntilTheyNoticed) {
  begin(0, 0);
  record_.shrunk(0, {.noticed = at(950), .at = at(1400), .ranks = {0, 1, 3}, .iteration = 0},
                 at(40));
  EXPECT_EQ(record_.finish({}).run.counters.at("longest_receive_stall_us"), 910'000);
}

/// The longest stall of a job of which ranks are killed at 4 s; an iteration begins at 30 ms, and
/// the faults strike then.
std::int64_t stallOf(RunRecord& record, const std::vector<TimePoint>& damages) {
  record.failed(at(4000), RunStatus::kHung, "not over within the deadline");
  Observed observed;
  for (const TimePoint struck : damages) {
    observed.changes.faults.push_back({.changes = {{true, struck, struck}}});
  }
  const reports::Run run = record.finish(observed).run;
  const auto found = run.counters.find("longest_receive_stall_us");
  return found == run.counters.end() ? 0 : found->second / 1000;
}

TEST_F(RunRecordTest, RanksThatAreKilledAtTheDeadlineStalledSinceTheFault) {
  begin(0, 30);
  EXPECT_EQ(stallOf(record_, {at(10), at(500), at(3000)}), 3970) << "from the begin, it hung";
}

TEST_F(RunRecordTest, AJobThatWaitsBetweenIterationsStalledToo) {
  iteration(0, 30, 520);
  EXPECT_EQ(stallOf(record_, {at(500)}), 3480);
}

TEST_F(RunRecordTest, AJobThatWentOnAfterTheFaultHasNotStalledSinceThen) {
  iteration(0, 30, 1200);
  begin(1, 1200);
  EXPECT_EQ(stallOf(record_, {at(500)}), 0) << "slow, for all that is known";
}

TEST_F(RunRecordTest, WhatKilledRanksHeldIsKept) {
  const wire::Resources resources{.memoryStart = 100, .memoryMax = 900, .sent = 5};
  record_.iterationEnded(0, {.resources = resources});
  restart(700, 80, 800, 900);
  record_.iterationEnded(0, {.resources = wire::Resources{.memoryMax = 120}});
  const reports::Run run = record_.finish({}).run;
  ASSERT_EQ(run.resources.size(), 2u);
  EXPECT_EQ(run.resources[0].memory_max_bytes, 900);
}

TEST_F(RunRecordTest, AHangThatIsNotProvedMakesTheRunInvalid) {
  const auto problem = [&](std::optional<std::uint64_t> payload) {
    RunRecord record(scenario_, planned_);
    record.hung(at(600), {at(100), payload, at(200)});
    const reports::Run run = record.finish({}).run;
    EXPECT_EQ(run.status, RunStatus::kInvalid);
    return run.message;
  };
  EXPECT_THAT(problem(4096), HasSubstr("4096 payload bytes were delivered in the 400 ms"));
  EXPECT_THAT(problem(std::nullopt), HasSubstr("before a hang could be proved"));
}

TEST_F(RunRecordTest, WhatTheBenchSawIsPartOfTheEntry) {
  Observed observed;
  observed.rails.resize(3);
  observed.faults.resize(1);
  observed.evidence.resize(2);
  observed.invalidBecause = "port_down never triggered";
  const reports::Run run = record_.finish(observed).run;
  EXPECT_EQ(run.rails.size(), 3u);
  EXPECT_EQ(run.faults.size(), 1u);
  EXPECT_EQ(run.evidence.size(), 2u);
  EXPECT_EQ(run.status, RunStatus::kInvalid);
  EXPECT_EQ(run.message, "port_down never triggered");
}

// --- digests ---

class DigestRecordTest : public RunRecordTest {
 protected:
  DigestRecordTest() : RunRecordTest("random") {}
};

TEST_F(DigestRecordTest, AnIterationThatWasDoneAgainCountsOnce) {
  const auto digest = [&](const std::vector<int>& iterations) {
    RunRecord record(scenario_, planned_);
    for (const int iteration : iterations) {
      record.iterationBegan(0, {.iteration = iteration});
      for (int rank = 0; rank < ranks(); ++rank) {
        record.iterationEnded(
            rank, {.iteration = iteration, .digest = fmt::format("{}/{}", iteration, rank)});
      }
    }
    return record.finish({}).run.digest;
  };
  EXPECT_EQ(digest({0, 1, 2, 1, 2, 3}), digest({0, 1, 2, 3}));
  EXPECT_NE(digest({0, 1, 2}), digest({0, 1, 2, 3}));
}

TEST_F(DigestRecordTest, OneDifferentResultOnOneRankChangesIt) {
  const auto digest = [&](const std::string& ofRank3) {
    RunRecord record(scenario_, planned_);
    for (int rank = 0; rank < ranks(); ++rank) {
      record.iterationEnded(rank, {.digest = rank == 3 ? ofRank3 : "same"});
    }
    return record.finish({}).run.digest;
  };
  EXPECT_EQ(digest("a"), digest("a"));
  EXPECT_NE(digest("a"), digest("b"));
}

}  // namespace
}  // namespace faultline::run
