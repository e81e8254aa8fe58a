#include "harness/analysis/slow_rails.h"

#include <gtest/gtest.h>

namespace faultline::run {
namespace {

reports::AppliedFault throttleOf(const std::string& rate, double start, double end) {
  reports::AppliedFault fault;
  fault.kind = "throttle";
  fault.parameters = {{"rate", rate}, {"direction", "both"}};
  fault.target.node = 1;
  fault.target.rail = 0;
  fault.start_ms = start;
  fault.end_ms = end;
  return fault;
}

reports::Run runOf(std::vector<reports::AppliedFault> faults) {
  reports::Run run;
  run.faults = std::move(faults);
  for (int i = 0; i < static_cast<int>(run.faults.size()); ++i) {
    run.evidence.push_back({i, "look", "seen", true});
  }
  return run;
}

reports::Degradation seenBy(int rank, int peer, int rail, double at) {
  return {.rank = rank, .rail = rail, .peer = peer, .at_ms = at, .until_ms = {}, .share = 0.1};
}

TEST(SlowRailsTest, AStrikeIsFoundAtEitherEndWhileItLasts) {
  reports::Run run = runOf({throttleOf("10%", 100, 500), throttleOf("1%", 1000, 2000)});
  EXPECT_EQ(slowStrikes(run, 1).due, 2);
  EXPECT_EQ(slowStrikes(run, 1).missed, 2);
  run.degradations = {seenBy(0, 1, 0, 300), seenBy(1, 2, 0, 1100)};
  EXPECT_EQ(slowStrikes(run, 1).missed, 0);
  EXPECT_EQ(unexplainedDegradations(run, 1), 0);
  run.degradations[1].at_ms = 300;  // and never over: the second was not found
  EXPECT_EQ(slowStrikes(run, 1).missed, 1);
}

TEST(SlowRailsTest, OtherLinksAndTimesAreNotExplained) {
  reports::Run run = runOf({throttleOf("10%", 100, 500)});
  run.degradations = {seenBy(0, 2, 0, 300), seenBy(0, 1, 1, 300), seenBy(0, 1, 0, 99),
                      seenBy(0, 1, 0, 700)};
  EXPECT_EQ(unexplainedDegradations(run, 1), 4);
  EXPECT_EQ(slowStrikes(run, 1).missed, 1);
  run.degradations = {seenBy(0, 3, 0, 300)};  // ranks 2 and 3 are on node 1 then
  EXPECT_EQ(unexplainedDegradations(run, 2), 0);
}

TEST(SlowRailsTest, WhatIsHardlySlowerOrWasNotSeenToHappenNeedNotBeFound) {
  reports::Run run = runOf({throttleOf("75%", 100, 500), throttleOf("40Mbit", 1000, 2000),
                            throttleOf("50%", 3000, 4000)});
  EXPECT_EQ(slowStrikes(run, 1).due, 1);
  run.evidence[2].ok = false;
  EXPECT_EQ(slowStrikes(run, 1).due, 0);
}

}  // namespace
}  // namespace faultline::run
