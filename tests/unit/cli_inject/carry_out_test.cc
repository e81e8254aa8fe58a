#include "harness/cli/carry_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/lapsing_fault.h"

namespace faultline::cli {
namespace {

using ::testing::ContainsRegex;
using testing::LapsingFault;

Outcome outcomeOf(std::optional<Duration> lasts, Duration duration) {
  LapsingFault fault(lasts);
  auto interrupt = run::Interrupt::watch();
  EXPECT_TRUE(interrupt.ok());
  return carryOut(fault, duration, *interrupt);
}

TEST(CarryOutTest, AFaultThatEndedByItselfTooEarlyHasNotLasted) {
  const Outcome outcome = outcomeOf(5ms, 1h);
  EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
  EXPECT_THAT(outcome.status.message(),
              ContainsRegex("ended by itself after about [0-9]+ ms of the 1h "));
  EXPECT_TRUE(outcome.reverted.ok());
  EXPECT_GE(outcome.lasted, 5ms);
}

TEST(CarryOutTest, AFaultThatEndedByItselfAfterItsTimeHasLastedUntilThen) {
  const Outcome outcome = outcomeOf(1h, 1ms);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_TRUE(outcome.evidence.ok);
  EXPECT_GE(outcome.lasted, 1h) << "as it says itself, and not until it was taken back";
}

TEST(CarryOutTest, AFaultThatWasTakenBackHasLastedUntilThen) {
  const Outcome outcome = outcomeOf(std::nullopt, 1h);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_LT(outcome.lasted, 1h);
}

}  // namespace
}  // namespace faultline::cli
