#include <gtest/gtest.h>

#include "injector/faults/registry.h"
#include "tests/netns/fabric/job.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

// A job whose rails are not all up when it begins.

namespace faultline::test {
namespace {

using channel::Cause;

constexpr std::int64_t kElements = 1 << 17;
constexpr int kRails = 2;

class DeadAtStartTest : public NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(
        cluster_, netns::Cluster::create({.nodes = 3, .rails = kRails, .rail_rate = 400'000'000}));
  }

  /// Applied.
  std::unique_ptr<injector::Fault> breakRail(std::string_view kind, int node, int rail) {
    const auto parameters = injector::FaultParameters::parse(*injector::findFaultKind(kind), {});
    EXPECT_OK(parameters.status());
    auto fault = injector::makeFault(kind, *parameters, cluster_->railTarget(node, rail));
    EXPECT_OK(fault.status());
    EXPECT_OK((*fault)->prepare());
    EXPECT_OK((*fault)->apply());
    return std::move(fault).value();
  }

  std::unique_ptr<netns::Cluster> cluster_;
};

TEST_F(DeadAtStartTest, ItBeginsWithoutAPortAndTakesItBack) {
  constexpr int kNode = 1, kRail = 1;
  const auto fault = breakRail("port_down", kNode, kRail);
  Job job(*cluster_, kElements);
  ASSERT_TRUE(job.awaitConnected()) << (job.problems().empty() ? "" : job.problems()[0]);
  for (int rank = 0; rank < job.size(); ++rank) {
    const auto events = job.events(rank);
    const std::size_t missing = rank == kNode ? 2 : 1;
    ASSERT_EQ(events.failovers.size(), missing) << "rank " << rank;
    for (const auto& [peer, failover] : events.failovers) {
      EXPECT_EQ(failover.rail, kRail);
      EXPECT_EQ(failover.cause, rank == kNode ? Cause::kLocalNic : Cause::kRemoteNic);
    }
    EXPECT_TRUE(events.failbacks.empty());
  }
  EXPECT_OK(fault->revert());
  EXPECT_TRUE(pollUntil(kLong, [&] {
    return job.events(kNode).failbacks.size() == 2 && job.events(0).failbacks.size() == 1;
  }));
  const std::int64_t back = job.iterations();
  EXPECT_TRUE(pollUntil(kLong, [&] { return job.iterations() >= back + 3; }));
  job.stop();
  EXPECT_EQ(job.wrongElements(), 0);
  EXPECT_GT(job.checkedElements(), 0);
  EXPECT_TRUE(job.problems().empty()) << job.problems()[0];
}

TEST_F(DeadAtStartTest, APairWithoutARailIsTheSameErrorOnAllRanks) {
  std::vector<std::unique_ptr<injector::Fault>> faults;
  for (int rail = 0; rail < kRails; ++rail) faults.push_back(breakRail("port_down", 2, rail));
  const TimePoint begin = now();
  Job job(*cluster_, kElements, {.railGrace = 500ms, .giveUp = 1s});
  ASSERT_TRUE(pollUntil(kLong, [&] { return job.problems().size() == 3; }));
  // Both waits, the word of the end, and the rest of what a busy machine needs.
  EXPECT_LT(now() - begin, 10s);
  const std::vector<std::string> problems = job.problems();
  const auto word = [](const std::string& problem) { return problem.substr(problem.find("not ")); };
  for (const std::string& problem : problems) EXPECT_EQ(word(problem), word(problems[0]));
  EXPECT_NE(problems[0].find("not one rail"), std::string::npos) << problems[0];
  EXPECT_NE(problems[0].find("rail 1 (rail1)"), std::string::npos) << problems[0];
  for (const auto& fault : faults) EXPECT_OK(fault->revert());
}

}  // namespace
}  // namespace faultline::test
