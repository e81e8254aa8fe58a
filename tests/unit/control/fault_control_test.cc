#include "harness/control/fault_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/lapsing_fault.h"
#include "tests/support/sample_scenario.h"

namespace faultline::run {
namespace {

using ::testing::HasSubstr;
using testing::LapsingFault;
using ::testing::Not;

constexpr const char* kUntilEnd = "until: end";

/// Of rails that carry nothing.
Sampler idleSampler() {
  Sampler sampler(4, 2, [](std::vector<site::RailCounters>& counters) {
    counters.assign(8, {});
    return okStatus();
  });
  EXPECT_TRUE(sampler.sample(now()).ok());
  return sampler;
}

/// What is written of a fault that is to last so long, and ends by itself after `lasts`.
reports::Evidence evidenceOf(std::optional<Duration> lasts,
                             const std::string& extent = "duration: 20ms") {
  const scenario::Scenario scenario = sampleScenario(
      faults("  - {kind: process_stop, target: {node: 1}, at: 0s, " + extent + "}\n"));
  auto control = FaultControl::create(scenario, [&](const scenario::Fault&) {
    return Result<std::unique_ptr<injector::Fault>>(std::make_unique<LapsingFault>(lasts));
  });
  EXPECT_TRUE(control.ok()) << control.status().message();
  Sampler sampler = idleSampler();
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
  Sampler sampler = idleSampler();
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

/// What a `during` fault is said to have missed, in a job of which one rank dies in the iteration
/// that it struck, and the others are given up, or not.
std::string hitOfAJobThatDied(bool givenUp) {
  const scenario::Scenario scenario =
      sampleScenario(faults("  - {kind: port_down, target: {node: 1, rail: 0},"
                            " during: {iteration: 3, progress: 50%}, duration: 40ms}\n"));
  auto control = FaultControl::create(scenario, [](const scenario::Fault&) {
    return Result<std::unique_ptr<injector::Fault>>(std::make_unique<LapsingFault>(std::nullopt));
  });
  EXPECT_TRUE(control.ok()) << control.status().message();
  std::uint64_t moved = 0;  // by each rail
  Sampler sampler(4, 2, [&](std::vector<site::RailCounters>& counters) {
    counters.assign(8, {});
    for (site::RailCounters& rail : counters) rail.tx_bytes = moved;
    return okStatus();
  });
  EXPECT_TRUE(sampler.sample(now()).ok());
  const TimePoint start = now();
  control->started(start);
  for (int node = 0; node < 4; ++node) control->warmupIteration(node, 1000);
  control->iterationBegan(3, start, now(), sampler);
  moved = 250;  // on both rails of a node: half of an iteration
  EXPECT_TRUE(control->step(now(), sampler).ok());
  if (givenUp) {
    control->givenUp(now() + 1ms, 1);
    control->givenUp(now() + 2ms, {false, true, false, false});
  }
  EXPECT_TRUE(control->revertAll().ok());
  return control->applied(start).at(0).hit->detail;
}

TEST(FaultControlTest, AnIterationThatWasOpenWhenTheJobDiedWentOnUntilThen) {
  EXPECT_THAT(hitOfAJobThatDied(true), HasSubstr("after the fault on 4 of 4 ranks"));
  EXPECT_THAT(hitOfAJobThatDied(false), HasSubstr("after the fault on 0 of 4 ranks"));
}

/// What the controller does with one of several faults, and how that is to behave.
struct Treatment {
  int steps = 0;
  bool breaks = false;  ///< what it does over time
  bool reverted = false;
};

/// It has evidence once another one has been stepped some times since its own was asked for.
class WatchingFault final : public injector::Fault {
 public:
  /// Both outlive it. `watched` may be null: then it has evidence at once.
  WatchingFault(Treatment& own, const Treatment* watched) : own_(own), watched_(watched) {}
  Status prepare() override { return okStatus(); }
  Status apply() override { return okStatus(); }
  Status step(TimePoint /*now*/) override {
    ++own_.steps;
    return own_.breaks ? errorf(Code::kIo, "the queue is gone") : okStatus();
  }
  Status revert() override {
    own_.reverted = true;
    return okStatus();
  }
  std::string mechanism() const override { return "none"; }
  Duration evidenceBudget() const override { return 5s; }

 protected:
  bool conclusive() const override {
    constexpr int kEnough = 3;
    return watched_ == nullptr || (asked_ && watched_->steps >= *asked_ + kEnough);
  }
  injector::Evidence verdict() const override { return {"none", "none", "it ran", conclusive()}; }
  Status demandEvidence() override {
    asked_ = watched_->steps;
    return okStatus();
  }

 private:
  Treatment& own_;
  const Treatment* watched_;
  std::optional<int> asked_;
};

/// Two faults that strike together; the first lasts as `extent` says, the second until the end.
class TwoFaults : public ::testing::Test {
 protected:
  void begin(const std::string& extent, bool second_watches) {
    const scenario::Scenario scenario = sampleScenario(
        faults("  - {kind: process_stop, target: {node: 1}, at: 0s, " + extent +
               "}\n  - {kind: process_stop, target: {node: 2}, at: 0s, until: end}\n"));
    auto control = FaultControl::create(scenario, [&](const scenario::Fault& fault) {
      const bool first = fault.target->node == 1;
      return Result<std::unique_ptr<injector::Fault>>(
          first ? std::make_unique<WatchingFault>(first_, &second_)
                : std::make_unique<WatchingFault>(second_, second_watches ? &first_ : nullptr));
    });
    ASSERT_TRUE(control.ok()) << control.status().message();
    control_.emplace(std::move(*control));
    control_->started(now());
  }
  /// Until the first has ended, or something fails.
  Status awaitEnd() {
    Status status;
    while (status.ok() && !first_.reverted) status = control_->step(now(), sampler_);
    return status;
  }

  Treatment first_;
  Treatment second_;
  Sampler sampler_ = idleSampler();
  std::optional<FaultControl> control_;
};

// A fault in a program ends by itself when it is not stepped for as long as some evidence takes.
TEST_F(TwoFaults, AreBothSteppedWhileTheEvidenceOfOneIsWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(begin("duration: 20ms", /*second_watches=*/false));
  const Status ended = awaitEnd();
  EXPECT_TRUE(ended.ok()) << ended.message();
  EXPECT_TRUE(control_->evidence().at(0).ok) << "the other one was not stepped meanwhile";
  EXPECT_FALSE(second_.reverted);
}

TEST_F(TwoFaults, ThatEndTogetherAreBothOnUntilBothWereObserved) {
  ASSERT_NO_FATAL_FAILURE(begin(kUntilEnd, /*second_watches=*/true));
  EXPECT_TRUE(control_->step(now(), sampler_).ok());
  EXPECT_TRUE(control_->revertAll().ok());
  for (const reports::Evidence& evidence : control_->evidence()) EXPECT_TRUE(evidence.ok);
  EXPECT_TRUE(first_.reverted && second_.reverted);
}

TEST_F(TwoFaults, OneThatBreaksWhileTheOtherIsObservedIsAnErrorAndTheOtherIsTakenBack) {
  ASSERT_NO_FATAL_FAILURE(begin(kUntilEnd, /*second_watches=*/false));
  EXPECT_TRUE(control_->step(now(), sampler_).ok());
  second_.breaks = true;
  EXPECT_EQ(control_->revertAll().message(), "the queue is gone");
  EXPECT_FALSE(control_->evidence().at(0).ok) << "nobody waits any longer";
  EXPECT_TRUE(first_.reverted && second_.reverted);
}

}  // namespace
}  // namespace faultline::run
