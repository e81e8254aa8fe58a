#include "injector/faults/flap_clock.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "injector/faults/registry.h"

namespace faultline::injector {
namespace {

FlapClock clockOf(const std::string& period, const std::string& duty = "50%",
                  const std::string& count = "0") {
  const auto parameters = FaultParameters::parse(
      *findFaultKind("path_flap"), {{"period", period}, {"duty", duty}, {"count", count}});
  EXPECT_TRUE(parameters.ok());
  return FlapClock(*parameters);
}

/// When the outages begin of a fault that is looked at every `tick` and at the times in `late`
/// only so much later, until `duration` is over.
std::vector<Duration> outages(FlapClock clock, Duration duration, Duration tick = 1ms,
                              const std::map<Duration, Duration>& late = {}) {
  std::vector<Duration> begins;
  const TimePoint start{};
  clock.lastsFor(duration);
  clock.restart();
  clock.changed(true, start);
  begins.push_back(Duration::zero());
  Duration at = tick;
  // One look is made after the end: the bench was busy elsewhere when it was due.
  for (bool over = false; !over; at += tick) {
    if (const auto found = late.find(at); found != late.end()) at += found->second;
    over = at >= duration;
    if (!clock.due(start + at)) continue;
    const bool breaks = !clock.broken();
    clock.changed(breaks, start + at);
    if (breaks) begins.push_back(at);
  }
  EXPECT_EQ(clock.breaks(), std::ssize(begins));
  return begins;
}

TEST(FlapClockTest, AnOutageThatWouldBeginAtTheEndDoesNotHappen) {
  EXPECT_EQ(outages(clockOf("500ms"), 1s), (std::vector<Duration>{0ms, 500ms}));
  EXPECT_EQ(outages(clockOf("500ms"), 1s + 1ns), (std::vector<Duration>{0ms, 500ms, 1s}));
  EXPECT_EQ(outages(clockOf("500ms"), 500ms), (std::vector<Duration>{0ms}));
  EXPECT_EQ(outages(clockOf("500ms"), 1ms), (std::vector<Duration>{0ms}));
}

TEST(FlapClockTest, NoLateLookAddsOne) {
  for (const Duration tick : {1ms, 3ms, 7ms, 40ms, 90ms, 110ms}) {
    EXPECT_EQ(outages(clockOf("500ms"), 1s, tick).size(), 2u) << toMilliseconds(tick);
  }
  for (const Duration late : {1ms, 20ms, 100ms, 200ms}) {
    EXPECT_EQ(outages(clockOf("500ms"), 1s, 1ms, {{999ms, late}}).size(), 2u)
        << toMilliseconds(late);
  }
}

TEST(FlapClockTest, DelaysDoNotAddUp) {
  // Every look is up to 3 ms late, 200 changes long.
  const std::vector<Duration> begins = outages(clockOf("100ms"), 10s, 3ms);
  ASSERT_EQ(begins.size(), 100u);
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const Duration due = static_cast<std::int64_t>(i) * Duration(100ms);
    EXPECT_GE(begins[i], due);
    EXPECT_LT(begins[i], due + 3ms);
  }
}

TEST(FlapClockTest, ALateChangeLeavesHalfOfItsPhase) {
  // The second outage is due at 100 ms and seen at 160: the port is down until 185 at least.
  const std::vector<Duration> begins = outages(clockOf("100ms"), 400ms, 1ms, {{100ms, 60ms}});
  EXPECT_EQ(begins, (std::vector<Duration>{0ms, 160ms, 210ms, 300ms}));
}

TEST(FlapClockTest, WhatIsPlanned) {
  struct Case {
    std::string period, count;
    std::optional<Duration> duration;
    std::optional<std::int64_t> planned;
  };
  const std::vector<Case> cases{{"500ms", "0", 1s, 2},
                                {"500ms", "0", 1s + 1ns, 3},
                                {"500ms", "0", 1s - 1ns, 2},
                                {"500ms", "1", 1s, 1},
                                {"500ms", "9", 1s, 2},
                                {"500ms", "9", std::nullopt, 9},
                                {"500ms", "0", std::nullopt, {}},
                                {"300ms", "0", 1s, 4},
                                {"2ms", "0", 1s, 500},
                                {"3600s", "1000000", std::nullopt, 1'000'000}};
  for (const Case& one : cases) {
    FlapClock clock = clockOf(one.period, "50%", one.count);
    clock.lastsFor(one.duration);
    EXPECT_EQ(clock.planned(), one.planned) << one.period << " " << one.count;
  }
}

TEST(FlapClockTest, DutyIsTheShareOfThePeriodThatIsBroken) {
  FlapClock clock = clockOf("100ms", "20%");
  const TimePoint start{};
  clock.lastsFor(1s);
  clock.changed(true, start);
  EXPECT_FALSE(clock.due(start + 19ms));
  EXPECT_TRUE(clock.due(start + 20ms));
  clock.changed(false, start + 20ms);
  EXPECT_FALSE(clock.due(start + 99ms));
  EXPECT_TRUE(clock.due(start + 100ms));
}

TEST(FlapClockTest, AppliedAgainItBeginsAnew) {
  FlapClock clock = clockOf("100ms");
  clock.lastsFor(150ms);
  clock.changed(true, TimePoint{});
  clock.restart();
  EXPECT_EQ(clock.breaks(), 0);
  clock.changed(true, TimePoint{} + 7s);
  EXPECT_TRUE(clock.due(TimePoint{} + 7s + 50ms));
  EXPECT_FALSE(clock.due(TimePoint{} + 7s + 49ms));
}

TEST(FlapClockTest, KindsThatFlap) {
  int flapping = 0;
  for (const FaultKind& kind : faultKinds()) {
    std::map<std::string, std::string> given;
    const auto parameters = FaultParameters::parse(kind, given);
    if (parameters.ok() && FlapClock::drives(*parameters)) ++flapping;
  }
  EXPECT_EQ(flapping, 2) << "a new one must tell its losses like port_flap and path_flap";
}

}  // namespace
}  // namespace faultline::injector
