#include "harness/analysis/run_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::run {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

reports::AppliedFault outage(int node, std::optional<int> rail, double start,
                             std::optional<double> end) {
  reports::AppliedFault fault;
  fault.kind = "port_down";
  fault.target.node = node;
  fault.target.rail = rail;
  fault.start_ms = start;
  fault.end_ms = end;
  return fault;
}

reports::Failover failover(int rank, int peer, double detected, std::optional<double> resumed) {
  reports::Failover seen;
  seen.rank = rank;
  seen.peer = peer;
  seen.detected_ms = detected;
  seen.resumed_ms = resumed;
  return seen;
}

TEST(DeliveriesAfterReturnTest, FromTheFirstLinkOfTheTwoNodesThatIsPutRight) {
  reports::Run run;
  run.faults = {outage(1, 0, 100, 600), outage(1, 1, 100, 603), outage(3, 0, 100, 590)};
  run.failovers = {failover(0, 1, 105, 620), failover(1, 2, 105, 630)};
  EXPECT_THAT(deliveriesAfterReturn(run, 1), ElementsAre(DoubleEq(20), DoubleEq(30)));
}

TEST(DeliveriesAfterReturnTest, WithTwoRanksOnANodeTheNodeCounts) {
  reports::Run run;
  run.faults = {outage(1, 0, 100, 600)};
  run.failovers = {failover(3, 0, 105, 620), failover(1, 5, 105, 620)};
  EXPECT_THAT(deliveriesAfterReturn(run, 2), ElementsAre(DoubleEq(20)));
}

TEST(DeliveriesAfterReturnTest, NothingWhereAnotherLinkWasLeft) {
  reports::Run run;
  // Before it, after it, and never.
  run.faults = {outage(1, 0, 10, 90), outage(1, 1, 100, 600), outage(1, 2, 100, std::nullopt)};
  run.failovers = {failover(0, 1, 105, 115), failover(1, 0, 610, 615)};
  EXPECT_THAT(deliveriesAfterReturn(run, 1), IsEmpty());
}

TEST(DeliveriesAfterReturnTest, NothingOfWhatWasNeverDeliveredAndOfFaultsOfNoLink) {
  reports::Run run;
  run.faults = {outage(1, 0, 100, 600)};
  run.failovers = {failover(0, 1, 105, std::nullopt)};
  EXPECT_THAT(deliveriesAfterReturn(run, 1), IsEmpty());
  run.faults = {outage(1, std::nullopt, 100, 600)};
  run.failovers = {failover(0, 1, 105, 620)};
  EXPECT_THAT(deliveriesAfterReturn(run, 1), IsEmpty());
}

}  // namespace
}  // namespace faultline::run
