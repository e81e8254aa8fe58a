#include "harness/command/extract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::command {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NumbersInTest, EveryMatchOfEveryLine) {
  const std::string text = "# size time busbw\n8 10.5 0.01\nbusbw 1.5 busbw -2e3\nbusbw +7\n";
  EXPECT_THAT(*numbersIn(text, R"(busbw ([-+0-9.e]+))"), ElementsAre(1.5, -2000, 7));
  EXPECT_THAT(*numbersIn(text, R"(^\s*8 [0-9.]+ ([0-9.]+)$)"), ElementsAre(0.01));
  EXPECT_TRUE(numbersIn(text, "algbw ([0-9]+)")->empty());
}

TEST(NumbersInTest, ALineWithoutItsEndCounts) {
  EXPECT_THAT(*numbersIn("a 1\na 2", "a ([0-9])"), ElementsAre(1, 2));
}

TEST(NumbersInTest, WhatIsNoNumberIsAnError) {
  const auto numbers = numbersIn("busbw none\n", "busbw ([a-z]+)");
  ASSERT_FALSE(numbers.ok());
  EXPECT_THAT(numbers.status().message(), HasSubstr("matches 'none', which is no number"));
  EXPECT_FALSE(numbersIn("busbw inf", "busbw ([a-z]+)").ok());
}

TEST(NumbersInTest, AVeryLongLineIsOnlyLookedAtInPart) {
  const std::string line = "a 1 " + std::string(1 << 20, 'x') + " a 2\na 3\n";
  EXPECT_THAT(*numbersIn(line, "a ([0-9])"), ElementsAre(1, 3));
}

TEST(CheckRegexTest, NeedsOneGroup) {
  EXPECT_TRUE(checkRegex("busbw ([0-9.]+) (?:GB|MB)").ok());
  EXPECT_THAT(checkRegex("busbw [0-9.]+").message(), HasSubstr("0 groups"));
  EXPECT_THAT(checkRegex("(a)(b)").message(), HasSubstr("2 groups"));
  EXPECT_THAT(checkRegex("(").message(), HasSubstr("no regular expression"));
}

TEST(NumberAtTest, FollowsKeysAndIndices) {
  const std::string json = R"({"end": {"streams": [{"bytes": 3}, {"bytes": 4.5}], "a/b~c": 1}})";
  EXPECT_EQ(*numberAt(json, "end.streams.1.bytes"), 4.5);
  EXPECT_EQ(*numberAt(json, "end.a/b~c"), 1);
  EXPECT_THAT(numberAt(json, "end.streams.2.bytes").status().message(), HasSubstr("it has no"));
  EXPECT_THAT(numberAt(json, "end.streams.x").status().message(), HasSubstr("it has no"));
  EXPECT_THAT(numberAt(json, "end.streams").status().message(), HasSubstr("no number"));
  EXPECT_THAT(numberAt("{", "end").status().message(), HasSubstr("not JSON"));
}

TEST(PickTest, TakesTheOneThatCounts) {
  const std::vector<double> numbers{3, 1, 8};
  EXPECT_EQ(pick(Take::kLast, numbers), 8);
  EXPECT_EQ(pick(Take::kFirst, numbers), 3);
  EXPECT_EQ(pick(Take::kMax, numbers), 8);
  EXPECT_EQ(pick(Take::kMin, numbers), 1);
  EXPECT_EQ(pick(Take::kMean, numbers), 4);
  EXPECT_EQ(pick(Take::kSum, numbers), 12);
  EXPECT_EQ(pick(Take::kLast, {}), std::nullopt);
  for (const auto word : kTakeNames) EXPECT_EQ(nameOf(takeFromName(word)), word);
}

}  // namespace
}  // namespace faultline::command
