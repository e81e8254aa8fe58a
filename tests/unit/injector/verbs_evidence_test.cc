#include "injector/faults/verbs_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "injector/faults/registry.h"
#include "injector/faults/verbs_rule.h"

namespace faultline::injector {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using verbs::Counters;
using verbs::Effect;
using verbs::Rule;

using Rates = std::vector<std::optional<MeasuredRate>>;

bool proves(const Rule& rule, const Counters& counters, const Rates& achieved = {std::nullopt}) {
  return judgeVerbs(rule, counters, achieved).ok;
}

TEST(VerbsEvidenceTest, WhatNobodyRanIntoHasNotHappened) {
  for (const Effect effect : {Effect::kQpError, Effect::kPostError, Effect::kCompletionRewrite,
                              Effect::kCompletionLoss, Effect::kQpDelay, Effect::kQpRate}) {
    EXPECT_FALSE(proves({.effect = effect}, {})) << effectName(effect);
    // Decided, looked at, refused by the device: all of that is no effect.
    EXPECT_FALSE(proves({.effect = effect},
                        {.operations = 100, .struck = 5, .failures = 5, .inErrorBefore = 5}))
        << effectName(effect);
  }
  for (const Effect effect : {Effect::kQpError, Effect::kPostError, Effect::kCompletionRewrite,
                              Effect::kCompletionLoss}) {
    EXPECT_TRUE(proves({.effect = effect}, {.happened = 1})) << effectName(effect);
  }
}

TEST(VerbsEvidenceTest, ADelayIsProvedByItsShortest) {
  const Rule rule{.effect = Effect::kQpDelay, .delay = 5ms};
  EXPECT_TRUE(proves(rule, {.released = 3, .shortestNanoseconds = 5'000'000}));
  EXPECT_FALSE(proves(rule, {.released = 3, .shortestNanoseconds = 4'999'999}));
  EXPECT_FALSE(proves(rule, {.held = 10})) << "only held back so far";
}

TEST(VerbsEvidenceTest, ARateIsTheAchievedOne) {
  const Rule rule{.effect = Effect::kQpRate, .bitsPerSecond = 100'000'000};
  EXPECT_FALSE(proves(rule, {.released = 100}));
  EXPECT_TRUE(proves(rule, {.released = 100}, {MeasuredRate{98'000'000, 200ms}}));
  EXPECT_TRUE(proves(rule, {.released = 100}, {MeasuredRate{109'000'000, 200ms}}));
  EXPECT_FALSE(proves(rule, {.released = 100}, {MeasuredRate{111'000'000, 200ms}}));
  EXPECT_FALSE(proves(rule, {.released = 100}, {MeasuredRate{0, 200ms}}));
  EXPECT_THAT(judgeVerbs(rule, {}, Rates{MeasuredRate{98'000'000, 200ms}}).observed,
              StartsWith("98.00 Mbit/s for 100Mbit requested, measured over 200 ms;"));
  EXPECT_THAT(judgeVerbs(rule, {}, Rates{std::nullopt}).observed,
              StartsWith("no rate for 100Mbit requested, as nothing had to wait for long;"));
}

TEST(VerbsEvidenceTest, ARateFarBelowTheRequestedOneIsToldThoughItWasKept) {
  const Rule rule{.effect = Effect::kQpRate, .bitsPerSecond = 100'000'000};
  const auto told = [&](const Rates& achieved) { return judgeVerbs(rule, {}, achieved).observed; };
  const MeasuredRate most{80'000'000, 200ms};
  const MeasuredRate less{15'000'000, 200ms};
  EXPECT_THAT(told({most}),
              StartsWith("80.00 Mbit/s for 100Mbit requested, measured over 200 ms;"));
  EXPECT_THAT(told({less}), StartsWith("15.00 Mbit/s for 100Mbit requested, measured over 200 ms "
                                       "(0.15 of it, though something was waiting at each look"));
  EXPECT_THAT(told({MeasuredRate{50'000'000, 200ms}}), HasSubstr("(0.50 of it, though"))
      << "a half is not what was asked for";
  EXPECT_TRUE(proves(rule, {}, {less})) << "no more than that went through";
  EXPECT_THAT(told({most, less}), HasSubstr("at least (0.15 of it, though"));
  EXPECT_THAT(told({most, most}), Not(HasSubstr("of it, though")));
}

TEST(VerbsEvidenceTest, EachProcessHasTheRateForItself) {
  const Rule rule{.effect = Effect::kQpRate, .bitsPerSecond = 100'000'000};
  const MeasuredRate kept{98'000'000, 210ms};
  const MeasuredRate slower{85'000'000, 200ms};
  const MeasuredRate faster{111'000'000, 200ms};
  EXPECT_TRUE(proves(rule, {}, {kept, kept, slower}));
  EXPECT_TRUE(proves(rule, {}, {std::nullopt, kept})) << "in the first nothing had to wait";
  EXPECT_FALSE(proves(rule, {}, {kept, faster}));
  EXPECT_FALSE(proves(rule, {}, {faster, slower, slower})) << "not their average";
  EXPECT_FALSE(proves(rule, {}, {std::nullopt, std::nullopt}));
  const std::string text = judgeVerbs(rule, {}, Rates{kept, std::nullopt, slower}).observed;
  EXPECT_THAT(text, StartsWith("85.00 to 98.00 Mbit/s in 2 of 3 processes for 100Mbit requested in "
                               "each, measured over 200 ms at least;"));
  EXPECT_THAT(text, HasSubstr("counted in 3 processes together, each of which has trigger, budget "
                              "and rate for itself"));
}

TEST(VerbsEvidenceTest, GenuineErrorsAndBlindSpotsAreTold) {
  const std::string text = judgeVerbs({.effect = Effect::kQpError},
                                      {.happened = 2,
                                       .dropped = 6,
                                       .genuineErrors = 3,
                                       .flushErrors = 4,
                                       .genuinePostErrors = 8,
                                       .fullQueues = 9,
                                       .inErrorBefore = 7,
                                       .uncovered = 5},
                                      Rates{std::nullopt})
                               .observed;
  EXPECT_THAT(text, HasSubstr("2 queue pairs"));
  EXPECT_THAT(text, HasSubstr("7 were in error before"));
  EXPECT_THAT(text,
              HasSubstr("genuine errors meanwhile: 3 completions, 8 posts; flushed: 4; posts to a "
                        "full queue: 9"));
  EXPECT_THAT(text, HasSubstr("5 completions passed the shim unseen"));
  EXPECT_THAT(text, HasSubstr("6 that were held went with their queue pairs"));
  EXPECT_THAT(text, Not(HasSubstr("processes"))) << "there is one";
}

TEST(VerbsEvidenceTest, ProgramsAddUpAndTheShortestIsTheShortestOfAll) {
  const Counters one{.operations = 1, .shortestNanoseconds = 7};
  const Counters two{.operations = 2, .shortestNanoseconds = 5};
  EXPECT_EQ(sum(one, two).operations, 3u);
  EXPECT_EQ(sum(one, two).shortestNanoseconds, 5u);
  EXPECT_EQ(sum(two, one).shortestNanoseconds, 5u);
  EXPECT_EQ(sum(one, {}).shortestNanoseconds, 7u);
  EXPECT_EQ(sum({}, one).shortestNanoseconds, 7u);
}

TEST(VerbsEvidenceTest, EverythingThatIsCountedAddsUp) {
  const auto times = [](std::uint64_t n) {
    return Counters{.operations = n,
                    .bytes = 2 * n,
                    .struck = 3 * n,
                    .happened = 4 * n,
                    .held = 5 * n,
                    .released = 6 * n,
                    .dropped = 7 * n,
                    .releasedBytes = 8 * n,
                    .heldNanoseconds = 9 * n,
                    .shortestNanoseconds = 10,
                    .genuineErrors = 11 * n,
                    .flushErrors = 12 * n,
                    .genuinePostErrors = 13 * n,
                    .fullQueues = 14 * n,
                    .failures = 15 * n,
                    .inErrorBefore = 16 * n,
                    .uncovered = 17 * n,
                    .queuePairs = 18 * n};
  };
  EXPECT_EQ(sum(times(100), times(11)), times(111));
}

FaultParameters parse(std::string_view kind, const std::map<std::string, std::string>& texts) {
  const auto parsed = FaultParameters::parse(*findFaultKind(kind), texts);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return *parsed;
}

TEST(VerbsRuleOfParametersTest, EveryParameterArrives) {
  const auto rule = verbsRule(Effect::kCompletionRewrite,
                              parse("completion_rewrite", {{"status", "rem_access_err"},
                                                           {"side", "both"},
                                                           {"pick", "one"},
                                                           {"device", "mlx5_0"},
                                                           {"qpn", "17"},
                                                           {"peer_qpn", "18"},
                                                           {"dlid", "5"},
                                                           {"dgid", "FE80:0::0001"},
                                                           {"after_operations", "10"},
                                                           {"after_bytes", "1MiB"},
                                                           {"probability", "25%"},
                                                           {"budget", "3"},
                                                           {"seed", "7"}}));
  ASSERT_TRUE(rule.ok()) << rule.status().message();
  const Rule expected{.effect = Effect::kCompletionRewrite,
                      .match = {"mlx5_0", 17, 18, 5, "fe80::1"},
                      .one = true,
                      .side = verbs::Side::kBoth,
                      .trigger = {10, 1 << 20, 0.25, 3, 7},
                      .status = 10,
                      .lease = kVerbsLease};
  EXPECT_EQ(*rule, expected);
}

TEST(VerbsRuleOfParametersTest, DefaultsMeanEverythingAtOnce) {
  const auto error = verbsRule(Effect::kQpError, parse("qp_error", {}));
  ASSERT_TRUE(error.ok());
  EXPECT_TRUE(error->one);
  EXPECT_TRUE(error->trigger.now());
  EXPECT_EQ(error->match, verbs::Match{});
  const auto rate = verbsRule(Effect::kQpRate, parse("qp_rate", {{"rate", "400Mbit"}}));
  ASSERT_TRUE(rate.ok());
  EXPECT_EQ(rate->bitsPerSecond, 400'000'000u);
  EXPECT_FALSE(rate->one);
  const auto delay = verbsRule(Effect::kQpDelay, parse("qp_delay", {{"delay", "3ms"}}));
  ASSERT_TRUE(delay.ok());
  EXPECT_EQ(delay->delay, 3ms);
}

// Whatever the table lets one write, the shim understands.
TEST(VerbsRuleOfParametersTest, EveryChoiceOfTheTableIsKnown) {
  for (const auto& [kind, name] :
       {std::pair{"post_error", "errno"}, std::pair{"completion_rewrite", "status"},
        std::pair{"completion_rewrite", "side"}}) {
    const FaultKind& row = *findFaultKind(kind);
    for (const std::string_view choice : findParameter(row, name)->choices) {
      const auto effect = *verbs::findEffect(kind);
      EXPECT_TRUE(verbsRule(effect, parse(kind, {{name, std::string(choice)}})).ok()) << choice;
    }
  }
}

TEST(VerbsEvidenceTest, WhatIsCountedIsToldToProgramsToo) {
  const auto numbers = judgeVerbs({.effect = Effect::kQpRate, .bitsPerSecond = 100'000'000},
                                  {.happened = 7, .genuineErrors = 2},
                                  Rates{MeasuredRate{98'000'000, 200ms}, std::nullopt,
                                        MeasuredRate{97'000'000, 200ms}})
                           .numbers;
  EXPECT_EQ(numbers.at("happened"), 7);
  EXPECT_EQ(numbers.at("genuine_completion_errors"), 2);
  EXPECT_EQ(numbers.at("achieved_bits_per_second"), 97'000'000);
  EXPECT_FALSE(judgeVerbs({.effect = Effect::kQpError}, {}, Rates{std::nullopt})
                   .numbers.contains("achieved_bits_per_second"));
}

TEST(VerbsRuleOfParametersTest, WhatIsNoGidIsRefused) {
  const auto rule = verbsRule(Effect::kQpError, parse("qp_error", {{"dgid", "10.0.0.2"}}));
  EXPECT_EQ(rule.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(rule.status().message(), HasSubstr("::ffff:10.0.0.2"));
}

}  // namespace
}  // namespace faultline::injector
