#include "harness/cli/carry_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "injector/fault_kind.h"
#include "injector/faults/registry.h"
#include "injector/netlink/link_target.h"
#include "tests/support/lapsing_fault.h"
#include "tests/support/poll_until.h"
#include "tests/support/run_program.h"
#include "tests/support/usual_signals.h"

namespace faultline::cli {
namespace {

using ::testing::ContainsRegex;
using testing::LapsingFault;

Outcome outcomeOf(std::optional<Duration> lasts, Duration duration) {
  LapsingFault fault(lasts);
  testing::takeSignalsAsUsual();
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

/// Whether there is evidence is the case's to say; it would last for ever, but interrupts itself as
/// soon as it is there.
class LastingFault final : public injector::Fault {
 public:
  explicit LastingFault(bool seen) : seen_(seen) {}
  Status prepare() override { return okStatus(); }
  Status apply() override {
    applied = true;
    ::raise(SIGINT);
    return okStatus();
  }
  Status step(TimePoint /*now*/) override { return okStatus(); }
  Status revert() override {
    reverted = true;
    return okStatus();
  }
  std::string mechanism() const override { return "none"; }
  Duration evidenceBudget() const override { return 1h; }
  bool applied = false;
  bool reverted = false;

 protected:
  bool conclusive() const override { return seen_; }
  injector::Evidence verdict() const override { return {"none", "none", "looked at", seen_}; }

 private:
  bool seen_;
};

TEST(CarryOutTest, InterruptedBeforeItBeginsItChangesNothing) {
  LastingFault fault(true);
  testing::takeSignalsAsUsual();
  auto interrupt = run::Interrupt::watch();
  ASSERT_TRUE(interrupt.ok());
  ::raise(SIGINT);
  const Outcome outcome = carryOut(fault, 1h, *interrupt);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_TRUE(outcome.reverted.ok());
  EXPECT_FALSE(outcome.evidence.ok);
  EXPECT_FALSE(fault.applied);
}

TEST(CarryOutTest, InterruptedItTellsTheEvidenceThatIsThere) {
  for (const bool seen : {true, false}) {
    LastingFault fault(seen);
    testing::takeSignalsAsUsual();
    auto interrupt = run::Interrupt::watch();
    ASSERT_TRUE(interrupt.ok());
    const Outcome outcome = carryOut(fault, 1h, *interrupt);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
    EXPECT_TRUE(outcome.interrupted);
    EXPECT_EQ(outcome.evidence.ok, seen);
    EXPECT_TRUE(fault.reverted);
    EXPECT_LT(outcome.lasted, 1h);
  }
}

/// What comes before its first change takes a while, as an announcement does.
class AnnouncedFault final : public injector::Fault {
 public:
  static constexpr Duration kAnnouncement = 300ms;
  Status prepare() override { return okStatus(); }
  Status apply() override {
    std::this_thread::sleep_for(kAnnouncement);
    return transit(true, [] { return okStatus(); });
  }
  Status step(TimePoint now) override {
    lasted = now - transitions().front().before;
    return okStatus();
  }
  Status revert() override { return okStatus(); }
  std::string mechanism() const override { return "none"; }
  Duration lasted{};

 protected:
  bool conclusive() const override { return true; }
  injector::Evidence verdict() const override { return {"none", "none", "looked at", true}; }
};

TEST(CarryOutTest, AnAnnouncementIsNotOfTheTimeOfTheFault) {
  AnnouncedFault fault;
  testing::takeSignalsAsUsual();
  auto interrupt = run::Interrupt::watch();
  ASSERT_TRUE(interrupt.ok());
  const Outcome outcome = carryOut(fault, AnnouncedFault::kAnnouncement / 2, *interrupt);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_GE(fault.lasted, AnnouncedFault::kAnnouncement / 2);
}

/// A fault of a user's commands, two of which may take very long.
class SlowCommandsTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  bool exists(const std::string& name) const { return std::filesystem::exists(file(name)); }

  /// Ctrl-C comes once that file is there.
  Outcome interruptedAt(const std::string& begun, std::map<std::string, std::string> commands) {
    commands["revert"] = "rm -f " + file("broken");
    commands["evidence"] = "ls " + file("broken");
    commands["where"] = "bench";
    commands["limit"] = formatDuration(kLimit);
    const auto parameters =
        injector::FaultParameters::parse(*injector::findFaultKind("external"), commands);
    EXPECT_TRUE(parameters.ok()) << parameters.status().message();
    auto fault = injector::makeFault("external", *parameters, netlink::LinkTarget{});
    EXPECT_TRUE(fault.ok()) << fault.status().message();
    testing::takeSignalsAsUsual();
    auto interrupt = run::Interrupt::watch();
    EXPECT_TRUE(interrupt.ok());
    const std::jthread user([&] {
      EXPECT_TRUE(test::pollUntil(20s, [&] { return exists(begun); }));
      ::kill(::getpid(), SIGINT);
    });
    const TimePoint begin = now();
    Outcome outcome = carryOut(**fault, 1h, *interrupt);
    EXPECT_LT(now() - begin, kLimit / 10);
    EXPECT_TRUE(outcome.interrupted);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
    EXPECT_TRUE(outcome.reverted.ok()) << outcome.reverted.message();
    EXPECT_FALSE(outcome.evidence.ok);
    return outcome;
  }

  static constexpr Duration kLimit = 10min;
  testing::TemporaryFolder folder_;
};

TEST_F(SlowCommandsTest, AnInterruptEndsAnApplyAndTakesBackWhatItHasDone) {
  const std::string apply = "sh -c 'touch {0}; sleep 600; touch {1}'";
  (void)interruptedAt("broken",
                      {{"apply", fmt::format(fmt::runtime(apply), file("broken"), file("done"))}});
  EXPECT_FALSE(exists("broken")) << "it is taken back";
  EXPECT_FALSE(exists("done"));
}

TEST_F(SlowCommandsTest, AnInterruptEndsAPrepareAfterWhichNothingIsDone) {
  const Outcome outcome = interruptedAt(
      "looks", {{"prepare", fmt::format("sh -c 'touch {}; sleep 600'", file("looks"))},
                {"apply", "touch " + file("broken")}});
  EXPECT_FALSE(exists("broken"));
  EXPECT_EQ(outcome.lasted, Duration::zero());
}

}  // namespace
}  // namespace faultline::cli
