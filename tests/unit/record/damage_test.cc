#include "harness/record/damage.h"

#include <gtest/gtest.h>

namespace faultline::run {
namespace {

constexpr TimePoint kStruck{1000s};

TEST(DamageTest, AFailureIsExplainedByTheDamageBeforeIt) {
  const auto ms = [](int value) { return kStruck + value * 1ms; };
  // Down from 0 to 300 ms, and from 10 s to 15 s.
  const std::vector<FaultChange> changes = {{true, ms(0), ms(1)},
                                            {false, ms(300), ms(301)},
                                            {true, ms(10'000), ms(10'001)},
                                            {false, ms(15'000), ms(15'000)}};
  const auto damageAt = [&](TimePoint when) -> std::optional<TimePoint> {
    const auto damage = damageBehind(changes, when, 1);
    return damage ? std::optional(damage->before) : std::nullopt;
  };
  EXPECT_EQ(damageBehind(changes, ms(200), 1)->after, ms(1));
  EXPECT_EQ(damageAt(kStruck - 1ms), std::nullopt);
  EXPECT_EQ(damageAt(ms(200)), ms(0));
  EXPECT_EQ(damageAt(ms(1200)), ms(0)) << "noticed late";
  EXPECT_EQ(damageAt(ms(1400)), std::nullopt) << "long over: something else";
  EXPECT_EQ(damageAt(ms(10'500)), ms(10'000));
  EXPECT_EQ(damageAt(ms(19'900)), ms(10'000)) << "back-off doubles the outage";
  EXPECT_EQ(damageAt(ms(20'100)), std::nullopt);
}

TEST(DamageTest, AStrikeThatTakesSeveralStepsBeginsWithItsFirst) {
  const auto ms = [](int value) { return kStruck + value * 1ms; };
  // Two connections to one peer are reset, one of another peer between them; later one of each.
  const int peer = 1, other = 2;
  const std::vector<FaultChange> changes = {
      {true, ms(0), ms(1), peer}, {true, ms(8), ms(9), other},    {true, ms(20), ms(22), peer},
      {false, ms(50), ms(50)},    {true, ms(100), ms(101), peer}, {true, ms(103), ms(104), other}};
  const auto expect = [&](int when, int to, int before, int after) {
    const auto damage = damageBehind(changes, ms(when), to);
    ASSERT_TRUE(damage) << when;
    EXPECT_EQ(damage->before, ms(before)) << when;
    EXPECT_EQ(damage->after, ms(after)) << when;
  };
  expect(5, peer, 0, 1);  // noticed before the second was done, so it was the first
  expect(30, peer, 0, 22);
  expect(30, other, 8, 9);
  EXPECT_FALSE(damageBehind(changes, ms(5), other));
  EXPECT_FALSE(damageBehind(changes, ms(30), 3)) << "nothing of it was damaged";
  expect(90, peer, 0, 22);      // late, after it was over
  expect(120, peer, 100, 101);  // the next strike, not the first of all
  expect(120, other, 103, 104);
}

TEST(DamageTest, ARailGroupBreaksALinkWithTheFirstOfItsEnds) {
  const auto damage = [](int ms, std::optional<int> group = {}, std::optional<int> over = {}) {
    const auto moment = [](int value) { return kStruck + value * 1ms; };
    return Damage{moment(ms), moment(ms + 1), over ? std::optional(moment(*over)) : std::nullopt,
                  group};
  };
  const auto broke = [](std::vector<Damage> all) {
    return toMilliseconds(whatBroke(std::move(all))->before - kStruck);
  };
  EXPECT_FALSE(whatBroke({}));
  EXPECT_EQ(broke({damage(15, 4), damage(0, 4)}), 0);
  EXPECT_EQ(broke({damage(15, 4), damage(0, 5)}), 15) << "two groups";
  EXPECT_EQ(broke({damage(0), damage(15)}), 15) << "two faults: the first may only have slowed it";
  EXPECT_EQ(broke({damage(0, 4), damage(5), damage(10, 4)}), 5);
  EXPECT_EQ(broke({damage(0, 4, 90), damage(100, 4)}), 100) << "its next strike";
  EXPECT_EQ(broke({damage(0, 4, 120), damage(100, 4)}), 0);
}

TEST(FaultChangesTest, OnlyFaultsOfTheRailAtEitherEndExplainAFailure) {
  const auto struck = [](int node, int rail, int ms) {
    return FaultChanges::OfFault{
        .node = node, .rail = rail, .changes = {{true, kStruck + ms * 1ms, kStruck + ms * 1ms}}};
  };
  const FaultChanges changes{{struck(1, 0, 20),
                              struck(2, 1, 10),
                              struck(3, 0, 5),
                              {.changes = {{true, kStruck, kStruck}}}}};
  const auto behind = [&](int rail, int a, int b) {
    const auto damage = changes.behind(kStruck + 100ms, rail, a, b);
    return damage ? toMilliseconds(damage->before - kStruck) : -1;
  };
  EXPECT_EQ(behind(0, 0, 1), 20);
  EXPECT_EQ(behind(0, 1, 0), 20);
  EXPECT_EQ(behind(0, 3, 1), 20) << "the latest of two";
  EXPECT_EQ(behind(1, 0, 1), -1);
  EXPECT_EQ(behind(0, 0, 2), -1);
  EXPECT_EQ(changes.damages(),
            (std::vector{kStruck, kStruck + 5ms, kStruck + 10ms, kStruck + 20ms}));
  EXPECT_EQ(changes.latestBefore(kStruck + 15ms), kStruck + 10ms);
  EXPECT_EQ(changes.latestBefore(kStruck - 1ms), std::nullopt);
}

}  // namespace
}  // namespace faultline::run
