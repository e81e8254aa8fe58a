#include "harness/command/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace faultline::command {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What every engine must do alike; RE2's are skipped in a build without it.
class PatternEngineTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    engine_ = GetParam() ? makeRe2Engine() : makeChildEngine();
    if (engine_ == nullptr) GTEST_SKIP() << "this build has no RE2 (libre2-dev)";
  }
  std::vector<double> numbers(const std::string& text, const std::string& pattern) const {
    const auto found = engine_->numbersIn(text, pattern);
    EXPECT_TRUE(found.ok()) << pattern << ": " << found.status().message();
    return found.ok() ? *found : std::vector<double>();
  }
  std::unique_ptr<PatternEngine> engine_;
};
INSTANTIATE_TEST_SUITE_P(Engines, PatternEngineTest, ::testing::Values(true, false),
                         [](const auto& which) { return which.param ? "Re2" : "Child"; });

TEST_P(PatternEngineTest, FindsEveryMatchOfEveryLine) {
  EXPECT_THAT(numbers("busbw 1.5 busbw -2e3\nbusbw +7", "busbw ([-+0-9.e]+)"),
              ElementsAre(1.5, -2000, 7));
  EXPECT_THAT(numbers("a 1\nb 2\na 3\n", "^a ([0-9])$"), ElementsAre(1, 3));
  EXPECT_THAT(numbers("x", "a ([0-9])"), ElementsAre());
  EXPECT_THAT(numbers("", "a ([0-9])"), ElementsAre());
}

TEST_P(PatternEngineTest, UnderstandsEcmaScript) {
  struct Case {
    const char* text;
    const char* pattern;
    std::vector<double> found;
  };
  const std::vector<Case> cases{
      {"speed: 12 MB", R"(speed:\s*(\d+)\s(?:MB|GB))", {12}},
      {"a.b 1", R"(a\.b (\d))", {1}},
      {"axb 1", R"(a\.b (\d))", {}},
      {"loss 5\rloss 4\r", R"(loss (.*))", {5, 4}},  // '.' stops at CR, as ECMAScript's does
      {"A1 _2", R"(\w(\d))", {1, 2}},
      {"a-1", R"(a\-(\d))", {1}},
      {"a/1", R"(a\/(\d))", {1}},
      {"[7]", R"(\[(\d+)\])", {7}},
      {"[7]", R"([[](\d+)[\]])", {7}},
      {"x\v9", R"(x\s(\d))", {9}},
      {"x\v9", R"(x[\s](\d))", {9}},
      {"\x41 3", R"(\x41 (\d))", {3}},
      {"A 3", R"(\u0041 (\d))", {3}},
      {"Q 3", R"(\Q (\d))", {3}},  // a letter that RE2 takes for something else
      {"z3", R"([[:alpha:]]([[:digit:]]))", {3}},
      {"any\t4", R"(any[^](\d))", {4}},
      {"aab 5", R"(a{2}b (\d)+?)", {5}},
      {"\xc3\xa9 6", "\xc3\xa9 (\\d)", {6}},
      {"\xff 6", "(?:.) (\\d)", {6}},
      {"over 12", R"(\bover\b (\d+))", {12}},
      {"1 22 333", R"((\d+)(?: |$))", {1, 22, 333}},
  };
  for (const Case& one : cases) EXPECT_EQ(numbers(one.text, one.pattern), one.found) << one.pattern;
}

TEST_P(PatternEngineTest, RefusesTheSamePatterns) {
  const std::array<std::pair<const char*, const char*>, 9> cases{{
      {R"((a)\1)", "at character 4: a back reference"},
      {R"(a(?=b)(c))", "at character 2: look-arounds"},
      {R"((?!b)(c))", "look-arounds"},
      {R"((?<=b)(c))", "look-arounds"},
      {R"((?i)(c))", "only (?:...) is possible"},
      {R"((?P<n>c))", "only (?:...) is possible"},
      {R"((c)\)", "nothing behind it"},
      {R"([c)", "not closed"},
      {R"(\u0411(c))", "no byte"},
  }};
  for (const auto& [pattern, why] : cases) {
    EXPECT_THAT(engine_->check(pattern).message(), HasSubstr(why)) << pattern;
    EXPECT_FALSE(engine_->numbersIn("c", pattern).ok()) << pattern;
  }
  EXPECT_FALSE(engine_->check("(").ok());
  EXPECT_THAT(engine_->check(std::string(kLongestPattern + 1, 'a')).message(),
              HasSubstr("1025 bytes"));
  EXPECT_TRUE(engine_->check(std::string(kLongestPattern, 'a')).ok());
}

TEST_P(PatternEngineTest, WhatIsNoNumberIsAnError) {
  EXPECT_THAT(engine_->numbersIn("busbw none", "busbw ([a-z]+)").status().message(),
              HasSubstr("matches 'none', which is no number"));
}

TEST_P(PatternEngineTest, ALineIsLookedAtUpToItsBound) {
  const std::string line = "a 1 " + std::string(1 << 20, 'x') + " a 2\na 3\n";
  EXPECT_THAT(numbers(line, "a ([0-9])"), ElementsAre(1, 3));
}

TEST_P(PatternEngineTest, ManyNumbersComeBack) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "1\n";
  EXPECT_EQ(numbers(text, "([0-9])").size(), 100'000u);
}

TEST(PatternTest, ExponentialTimeEndsAtTheLimit) {
  const std::string text(40, 'a');
  const std::string pattern = "^(?:a+)+b([0-9])$";
  const auto ended = makeChildEngine(200)->numbersIn(text, pattern);
  EXPECT_EQ(ended.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(ended.status().message(), HasSubstr("took more than 200 ms"));
  const auto linear = makeRe2Engine();
  if (linear == nullptr) return;
  EXPECT_TRUE(linear->numbersIn(text, pattern)->empty()) << "it is no problem for RE2";
}

TEST(PatternTest, TheBestEngineOfTheBuildIsUsed) {
  const auto linear = makeRe2Engine();
  const auto child = makeChildEngine();
  EXPECT_STREQ(patternEngine().name(), (linear != nullptr ? linear : child)->name());
}

}  // namespace
}  // namespace faultline::command
