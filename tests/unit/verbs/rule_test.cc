#include "injector/verbs/rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <set>

namespace faultline::injector::verbs {
namespace {

using ::testing::HasSubstr;

const QueuePairFacts kFacts{"mlx5_0", 17, 23, 5, "fe80::1", "RC", "RTS"};

TEST(VerbsRuleTest, EveryNameIsFoundAgain) {
  for (const Effect effect : {Effect::kQpError, Effect::kPostError, Effect::kCompletionRewrite,
                              Effect::kCompletionLoss, Effect::kQpDelay, Effect::kQpRate}) {
    EXPECT_EQ(findEffect(effectName(effect)), effect);
  }
  for (const Side side : {Side::kSend, Side::kRecv, Side::kBoth}) {
    EXPECT_EQ(findSide(sideName(side)), side);
  }
  EXPECT_EQ(findEffect("qp_explode"), std::nullopt);
  EXPECT_EQ(findSide(""), std::nullopt);
  EXPECT_EQ(findStatus("retry_exc_err"), 12);  // the numbers of the verbs ABI
  EXPECT_EQ(findStatus("wr_flush_err"), 5);
  EXPECT_EQ(findStatus("success"), std::nullopt);
  EXPECT_EQ(findErrno("ENOMEM"), ENOMEM);
  EXPECT_EQ(findErrno("ENOENT"), std::nullopt);
}

TEST(VerbsRuleTest, WhatIsNotAskedForDoesNotMatter) {
  EXPECT_TRUE(matches({}, kFacts));
  EXPECT_TRUE(matches({"mlx5_0", 17, 23, 5, "fe80::1"}, kFacts));
  EXPECT_TRUE(matches({.peerNumber = 23}, kFacts));
}

TEST(VerbsRuleTest, EachThingAskedForMustBeSo) {
  const std::array<Match, 5> wrong{{{.device = "mlx5_1"},
                                    {.number = 18},
                                    {.peerNumber = 17},
                                    {.peerLid = 6},
                                    {.peerGid = "fe80::2"}}};
  for (const Match& match : wrong) EXPECT_FALSE(matches(match, kFacts)) << inWords(match);
  EXPECT_EQ(inWords({"mlx5_0", 17, 23, 5, "fe80::1"}),
            "queue pair 17 of mlx5_0 with peer 23 to LID 5 to GID fe80::1");
}

TEST(VerbsRuleTest, ATriggerThatWaitsForNothingIsNow) {
  EXPECT_TRUE(Trigger{}.now());
  EXPECT_TRUE((Trigger{.budget = 3, .seed = 7}).now());
  EXPECT_FALSE((Trigger{.afterOperations = 1}).now());
  EXPECT_FALSE((Trigger{.afterBytes = 1}).now());
  EXPECT_FALSE((Trigger{.probability = 0.999}).now());
}

TEST(VerbsRuleTest, SidesIncludeThemselves) {
  EXPECT_TRUE(includes(Side::kBoth, Side::kRecv));
  EXPECT_TRUE(includes(Side::kSend, Side::kSend));
  EXPECT_FALSE(includes(Side::kSend, Side::kRecv));
  EXPECT_FALSE(includes(Side::kRecv, Side::kSend));
}

TEST(VerbsRuleTest, ASeedChoosesTheSameOneAndSeedsChooseAll) {
  std::set<std::size_t> chosen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::size_t one = chooseOne(7, seed);
    EXPECT_LT(one, 7u);
    EXPECT_EQ(chooseOne(7, seed), one);
    chosen.insert(one);
  }
  EXPECT_EQ(chosen.size(), 7u);
}

TEST(VerbsRuleTest, WhatMakesNoSenseIsRefused) {
  const auto message = [](const Rule& rule) {
    const Status status = check(rule);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  const Rule good{.effect = Effect::kQpError, .lease = 1s};
  EXPECT_TRUE(check(good).ok());
  Rule rule = good;
  rule.lease = 99ms;
  EXPECT_THAT(message(rule), HasSubstr("lease"));
  rule.lease = 61s;
  EXPECT_THAT(message(rule), HasSubstr("lease"));
  for (const double probability : {0.0, -1.0, 1.01, std::numeric_limits<double>::quiet_NaN()}) {
    rule = good;
    rule.trigger.probability = probability;
    EXPECT_THAT(message(rule), HasSubstr("probability"));
  }
  rule = good;
  rule.effect = Effect::kPostError;
  EXPECT_THAT(message(rule), HasSubstr("errno"));
  rule.error = EIO;
  EXPECT_TRUE(check(rule).ok());
  rule.effect = Effect::kCompletionRewrite;
  EXPECT_THAT(message(rule), HasSubstr("status"));
  rule.status = 12;
  EXPECT_TRUE(check(rule).ok());
  rule.effect = Effect::kQpDelay;
  EXPECT_THAT(message(rule), HasSubstr("delay"));
  rule.delay = 11s;
  EXPECT_THAT(message(rule), HasSubstr("delay"));
  rule.delay = 10s;
  EXPECT_TRUE(check(rule).ok());
  rule.effect = Effect::kQpRate;
  EXPECT_THAT(message(rule), HasSubstr("rate"));
}

}  // namespace
}  // namespace faultline::injector::verbs
