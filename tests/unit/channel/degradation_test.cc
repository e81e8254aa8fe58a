#include "resilient_ccl/channel/degradation.h"

#include <gtest/gtest.h>

namespace faultline::channel {
namespace {

constexpr double kRate = 50e6;
constexpr Bytes kPair = 128 << 10;

/// A rail that always has something to carry, acknowledged in pairs of chunks, at `share` of the
/// others' rate.
class BusyRail {
 public:
  BusyRail() { rail.begin(heard); }

  /// How many times the state changed within `time`; `until` has when it last did.
  int carry(double share, Duration time) {
    const Duration end = heard + time;
    const Duration pause = fromSeconds(static_cast<double>(kPair) / (kRate * share));
    int changes = 0;
    for (Duration next = heard + pause; next <= end; next += pause) {
      // The peer is heard meanwhile.
      while (heard + 5ms < next) changes += observe(heard += 5ms, 0);
      changes += observe(heard = next, kPair);
    }
    while (heard < end) changes += observe(heard = std::min(end, heard + 5ms), 0);
    return changes;
  }

  Degradation rail;
  Duration heard{};
  Duration changed{};

 private:
  bool observe(Duration when, Bytes bytes) {
    rail.delivered(bytes);
    const bool change = rail.observe({.heard = when,
                                      .reference = kRate,
                                      .granule = kPair,
                                      .idle = false,
                                      .silenceProves = true});
    if (change) changed = when;
    return change;
  }
};

TEST(DegradationTest, HalfATenthAndAHundredthOfTheRateAreFoundOnceAndEndOnce) {
  for (const double share : {0.5, 0.1, 0.01}) {
    SCOPED_TRACE(share);
    BusyRail busy;
    EXPECT_EQ(busy.carry(1, 1s), 0);
    EXPECT_EQ(busy.carry(share, 300ms), 1);
    EXPECT_TRUE(busy.rail.degraded());
    EXPECT_NEAR(busy.rail.share(), share, 0.06);
    EXPECT_EQ(busy.carry(share, 1s), 0);
    EXPECT_EQ(busy.carry(0.75, 1s), 0) << "neither this nor that";
    EXPECT_EQ(busy.carry(1, 300ms), 1);
    EXPECT_FALSE(busy.rail.degraded());
  }
}

TEST(DegradationTest, TheSlowerARailTheSoonerItIsFound) {
  Duration before = Duration::max();
  for (const double share : {0.5, 0.3, 0.1}) {
    BusyRail busy;
    busy.carry(1, 1s);
    busy.carry(share, 400ms);
    EXPECT_LT(busy.changed - 1s, before) << share;
    before = busy.changed - 1s;
  }
}

TEST(DegradationTest, AMomentIsNotAStateAndThreeQuartersAreEnough) {
  BusyRail busy;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(busy.carry(0.1, 30ms), 0);
    EXPECT_EQ(busy.carry(1, 90ms), 0);
  }
  EXPECT_EQ(busy.carry(0.75, 5s), 0);
}

TEST(DegradationTest, AnEvenSlowerNetworkIsNotASlowRail) {
  // A pair takes 105 ms everywhere.
  constexpr double kSlowly = kRate / 40;
  Degradation rail;
  rail.begin({});
  Duration heard{};
  for (int i = 1; i < 2000; ++i) {
    heard += 5ms;
    if (i % 21 == 0) rail.delivered(kPair);
    EXPECT_FALSE(rail.observe({.heard = heard,
                               .reference = kSlowly,
                               .granule = kPair,
                               .idle = false,
                               .silenceProves = true}));
  }
}

TEST(DegradationTest, TheFirstAcknowledgementAfterIdlenessSaysLittle) {
  Degradation rail;
  Duration heard{};
  for (int i = 0; i < 1000; ++i) {
    rail.begin(heard += 20ms);
    rail.delivered(kPair / 2);  // one chunk; the network and a wake-up took most of the time
    EXPECT_FALSE(rail.observe({.heard = heard += 8ms,
                               .reference = kRate,
                               .granule = kPair / 2,
                               .idle = true,
                               .silenceProves = false}));
  }
  // At a tenth of the rate it takes 13 ms.
  int found = 0;
  for (int i = 0; i < 100; ++i) {
    rail.begin(heard += 20ms);
    rail.delivered(kPair / 2);
    found += rail.observe({.heard = heard += 18ms, .reference = kRate, .granule = 0, .idle = true});
  }
  EXPECT_EQ(found, 1);
}

TEST(DegradationTest, SilenceProvesOnlyOfAPathThatAnswers) {
  Degradation rail;
  rail.begin({});
  const auto silentFor = [&](Duration heard, bool proves) {
    return rail.observe({.heard = heard,
                         .reference = kRate,
                         .granule = kPair,
                         .idle = false,
                         .silenceProves = proves});
  };
  EXPECT_FALSE(silentFor(500ms, false));
  EXPECT_TRUE(silentFor(500ms, true));

  Degradation forgiven;
  forgiven.begin({});
  forgiven.forgive(500ms);  // the path had been dead
  forgiven.delivered(kPair);
  EXPECT_FALSE(forgiven.observe({.heard = 500ms, .reference = kRate, .granule = kPair}));
}

TEST(DegradationTest, ARailWithNothingToCarryIsNotSlow) {
  const auto observe = [](Degradation& rail, Duration heard, bool idle) {
    return rail.observe({.heard = heard,
                         .reference = kRate,
                         .granule = kPair,
                         .idle = idle,
                         .silenceProves = true});
  };
  Degradation rail;
  EXPECT_FALSE(observe(rail, 1s, false)) << "it has never had anything";
  rail.begin(1s);
  rail.delivered(kPair);
  EXPECT_FALSE(observe(rail, 1s, true));
  EXPECT_FALSE(observe(rail, 5s, false)) << "nor since then";
  EXPECT_FALSE(rail.degraded());
}

TEST(DegradationTest, WithoutAnotherRailNothingIsSlow) {
  Degradation rail;
  rail.begin({});
  for (Duration heard{}; heard < 5s; heard += 50ms) {
    rail.delivered(1);
    EXPECT_FALSE(rail.observe({.heard = heard, .reference = 0, .silenceProves = true}));
  }
}

TEST(DegradationTest, TheRateFollowsTheWorkAndFallsWithSilence) {
  BusyRail busy;
  EXPECT_EQ(busy.rail.rate({}), 0) << "nothing is known";
  busy.carry(1, 1s);
  EXPECT_NEAR(busy.rail.rate(busy.heard), kRate, kRate / 10);
  EXPECT_LT(busy.rail.rate(busy.heard + 100ms), kRate / 10);
  busy.carry(0.5, 200ms);
  EXPECT_NEAR(busy.rail.rate(busy.heard), kRate / 2, kRate / 10);
}

TEST(DegradationTest, WhatAnIdlePortPassesAtFirstIsNotItsRate) {
  // 384 KiB in 2 ms: four times the rate.
  Degradation rail;
  Duration heard{};
  rail.begin(heard);
  rail.delivered(kPair);
  rail.observe({.heard = heard += 10ms});
  EXPECT_TRUE(rail.unmeasured()) << "the first one says nothing";
  for (int pair = 0; pair < 3; ++pair) {
    rail.delivered(kPair);
    rail.observe({.heard = heard += 667us});
  }
  EXPECT_FALSE(rail.unmeasured());
  EXPECT_EQ(rail.rate(heard), 0) << "not known yet";
  for (int pair = 0; pair < 10; ++pair) {
    rail.delivered(kPair);
    rail.observe({.heard = heard += fromSeconds(static_cast<double>(kPair) / kRate)});
  }
  EXPECT_GT(rail.rate(heard), kRate);
  // A rail with the rate is not slow beside it.
  EXPECT_LT(rail.rate(heard), kRate / Degradation::kShare);
}

}  // namespace
}  // namespace faultline::channel
