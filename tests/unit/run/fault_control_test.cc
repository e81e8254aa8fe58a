#include "harness/run/fault_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/lapsing_fault.h"
#include "tests/unit/run/sample_scenario.h"

namespace faultline::run {
namespace {

using ::testing::HasSubstr;
using testing::LapsingFault;
using ::testing::Not;

constexpr const char* kUntilEnd = "until: end";

/// What is written of a fault that is to last so long, and ends by itself after `lasts`.
reports::Evidence evidenceOf(std::optional<Duration> lasts,
                             const std::string& extent = "duration: 20ms") {
  const scenario::Scenario scenario = sampleScenario(
      faults("  - {kind: process_stop, target: {node: 1}, at: 0s, " + extent + "}\n"));
  auto control = FaultControl::create(scenario, [&](const scenario::Fault&) {
    return Result<std::unique_ptr<injector::Fault>>(std::make_unique<LapsingFault>(lasts));
  });
  EXPECT_TRUE(control.ok()) << control.status().message();
  Sampler sampler(4, 2, [](std::vector<cluster::RailCounters>& counters) {
    counters.assign(8, {});
    return okStatus();
  });
  EXPECT_TRUE(sampler.sample(now()).ok());
  control->started(now());
  do {
    EXPECT_TRUE(control->step(now(), sampler).ok());
    if (extent == kUntilEnd) {
      EXPECT_TRUE(control->revertAll().ok());
    }
  } while (control->anyActive());
  const std::vector<reports::Evidence> evidence = control->evidence();
  EXPECT_EQ(evidence.size(), 1u);
  return evidence.at(0);
}

TEST(FaultControlTest, AFaultThatEndedByItselfBeforeItsTimeIsNoResult) {
  const reports::Evidence evidence = evidenceOf(Duration(0), kUntilEnd);
  EXPECT_FALSE(evidence.ok);
  EXPECT_THAT(evidence.observed, HasSubstr("it happened; it ended by itself after about "));
}

TEST(FaultControlTest, AFaultThatEndedByItselfLaterIsOneAndSaysSo) {
  const reports::Evidence evidence = evidenceOf(1h);
  EXPECT_TRUE(evidence.ok);
  EXPECT_THAT(evidence.observed, HasSubstr("ended by itself"));
}

TEST(FaultControlTest, AFaultThatWasTakenBackSaysNothingOfThat) {
  const reports::Evidence evidence = evidenceOf(std::nullopt);
  EXPECT_TRUE(evidence.ok);
  EXPECT_THAT(evidence.observed, Not(HasSubstr("ended by itself")));
}

/// Why a run proves nothing whose fault struck between two iterations, and that was given up then,
/// when these of its four ranks had ended.
std::string givenUpBetweenIterations(const std::vector<bool>& ended) {
  const scenario::Scenario scenario =
      sampleScenario(faults("  - {kind: process_stop, target: {node: 1}, at: 0s, until: end}\n"));
  auto control = FaultControl::create(scenario, [](const scenario::Fault&) {
    return Result<std::unique_ptr<injector::Fault>>(std::make_unique<LapsingFault>(std::nullopt));
  });
  EXPECT_TRUE(control.ok()) << control.status().message();
  Sampler sampler(4, 2, [](std::vector<cluster::RailCounters>& counters) {
    counters.assign(8, {});
    return okStatus();
  });
  EXPECT_TRUE(sampler.sample(now()).ok());
  const TimePoint start = now();
  control->iterationBegan(3, start, start, sampler);
  for (int rank = 0; rank < 4; ++rank) {
    control->iterationEnded(rank, 3, now(), sampler, /*last=*/false);
  }
  control->started(start);
  EXPECT_TRUE(control->step(now(), sampler).ok());
  control->givenUp(now() + 1ms, ended);
  EXPECT_TRUE(control->revertAll().ok());
  return control->invalidBecause();
}

TEST(FaultControlTest, AJobThatNeverBeginsItsNextIterationWasStruckAtWork) {
  EXPECT_EQ(givenUpBetweenIterations({false, false, false, false}), "");
  EXPECT_EQ(givenUpBetweenIterations({true, true, false, false}), "");
}

TEST(FaultControlTest, AJobThatHasEndedWasNot) {
  EXPECT_THAT(givenUpBetweenIterations({true, true, true, true}), HasSubstr("the work was over"));
  EXPECT_THAT(givenUpBetweenIterations({true, true, true, false}), HasSubstr("the work was over"));
}

}  // namespace
}  // namespace faultline::run
