#include "harness/run/damage.h"

#include <gtest/gtest.h>

namespace faultline::run {
namespace {

constexpr TimePoint kStruck{1000s};

TEST(DamageTest, AFailureIsExplainedByTheDamageBeforeIt) {
  const auto ms = [](int value) { return kStruck + value * 1ms; };
  // Down from 0 to 300 ms, and from 10 s to 15 s.
  const std::vector<injector::Transition> transitions = {{true, ms(0), ms(1)},
                                                         {false, ms(300), ms(301)},
                                                         {true, ms(10'000), ms(10'001)},
                                                         {false, ms(15'000), ms(15'000)}};
  const auto damageAt = [&](TimePoint when) -> std::optional<TimePoint> {
    const auto damage = damageBehind(transitions, when, "10.1.0.2");
    return damage ? std::optional(damage->before) : std::nullopt;
  };
  EXPECT_EQ(damageBehind(transitions, ms(200), "10.1.0.2")->after, ms(1));
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
  const std::string peer = "10.1.0.2", other = "10.1.0.3";
  const std::vector<injector::Transition> transitions = {
      {true, ms(0), ms(1), peer}, {true, ms(8), ms(9), other},    {true, ms(20), ms(22), peer},
      {false, ms(50), ms(50)},    {true, ms(100), ms(101), peer}, {true, ms(103), ms(104), other}};
  const auto expect = [&](int when, const std::string& to, int before, int after) {
    const auto damage = damageBehind(transitions, ms(when), to);
    ASSERT_TRUE(damage) << when;
    EXPECT_EQ(damage->before, ms(before)) << when;
    EXPECT_EQ(damage->after, ms(after)) << when;
  };
  expect(5, peer, 0, 1);  // noticed before the second was done, so it was the first
  expect(30, peer, 0, 22);
  expect(30, other, 8, 9);
  EXPECT_FALSE(damageBehind(transitions, ms(5), other));
  EXPECT_FALSE(damageBehind(transitions, ms(30), "10.1.0.4")) << "nothing of it was damaged";
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

}  // namespace
}  // namespace faultline::run
