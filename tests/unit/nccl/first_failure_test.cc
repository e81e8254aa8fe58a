#include "resilient_ccl/nccl/first_failure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

namespace faultline::nccl {
namespace {

constexpr TimePoint kFirstTime = TimePoint{} + 100s;

std::vector<std::byte> bytesIn(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(FirstFailureTest, TheFirstOneStaysUntilAnotherCannotBeItsConsequence) {
  FirstFailure failure;
  EXPECT_EQ(failure.number(), 0U);
  failure.note("no rail", kFirstTime);
  failure.note("a neighbour has ended", kFirstTime + FirstFailure::kMemory - 1ms);
  EXPECT_EQ(failure.kept().why, "no rail");
  EXPECT_EQ(failure.number(), 1U);
  failure.note("another", kFirstTime + FirstFailure::kMemory);
  EXPECT_EQ(failure.kept().why, "another");
  EXPECT_EQ(failure.number(), 2U);
}

TEST(FirstFailureTest, ArrivesAsAWholeWhateverTheOrderOfItsWords) {
  std::string why = "vm:2 (10.0.0.3): no rail to vm:7 (10.0.0.2) came back";
  for (int rail = 0; rail < 12; ++rail) why += " (rail " + std::to_string(rail) + ": local_nic)";
  auto words = wordsOf({.number = 3, .why = why});
  ASSERT_GT(words.size(), 1U);
  for (const auto& word : words) EXPECT_LE(word.size(), fabric::Fabric::kLongestWord);
  std::ranges::reverse(words);
  HeardFailure heard;
  for (std::size_t i = 0; i < words.size(); ++i) {
    EXPECT_EQ(heard.why(), "") << i;
    EXPECT_EQ(heard.take(words[i]), i + 1 == words.size());
  }
  EXPECT_EQ(heard.why(), why);
}

TEST(FirstFailureTest, WhatIsTooLongIsCutAndSaysSo) {
  HeardFailure heard;
  for (const auto& word : wordsOf({.number = 1, .why = std::string(5000, 'x')})) heard.take(word);
  EXPECT_EQ(heard.why().size(), FailureWord::kMostParts * kFailureTextOfWord);
  EXPECT_TRUE(heard.why().ends_with("x..."));
}

TEST(FirstFailureTest, PartsOfTwoFailuresDoNotMix) {
  const auto first = wordsOf({.number = 1, .why = std::string(kFailureTextOfWord + 9, 'a')});
  const auto second = wordsOf({.number = 2, .why = std::string(kFailureTextOfWord + 9, 'b')});
  HeardFailure heard;
  EXPECT_FALSE(heard.take(first[0]));
  EXPECT_FALSE(heard.take(second[1]));
  EXPECT_FALSE(heard.take(first[1])) << "late, and of one that is over";
  EXPECT_TRUE(heard.take(second[0]));
  EXPECT_EQ(heard.why(), std::string(kFailureTextOfWord + 9, 'b'));
}

TEST(FirstFailureTest, NothingButWhatCanBePrintedComesOfAPeer) {
  HeardFailure heard;
  for (const auto& word : wordsOf({.number = 1, .why = "a\n\x1b[31m%s{}\xff"})) heard.take(word);
  EXPECT_EQ(heard.why(), "a??[31m%s{}?");
}

TEST(FirstFailureTest, OtherWordsChangeNothing) {
  HeardFailure heard;
  EXPECT_FALSE(heard.take({}));
  EXPECT_FALSE(heard.take(bytesIn("done")));
  const auto word = wordsOf({.number = 1, .why = "x"}).front();
  for (std::size_t length = 0; length < word.size(); ++length) {
    EXPECT_FALSE(heard.take(std::span(word).first(length))) << length;
  }
  for (const auto& [part, parts] : {std::pair{0, 0}, {1, 1}, {0, 5}, {4, 5}, {255, 255}}) {
    FailureWord head{.number = 1,
                     .part = static_cast<std::uint8_t>(part),
                     .parts = static_cast<std::uint8_t>(parts)};
    auto bad = word;
    std::memcpy(bad.data(), &head, sizeof(head));
    EXPECT_FALSE(heard.take(bad)) << part << " of " << parts;
  }
  EXPECT_EQ(heard.why(), "");
  auto longer = word;
  longer.resize(fabric::Fabric::kLongestWord + 1);
  EXPECT_FALSE(heard.take(longer));
}

TEST(FirstFailureTest, WhateverAPeerSaysIsBoundedAndPrintable) {
  int whole = 0;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    HeardFailure heard;
    for (int i = 0; i < 100; ++i) {
      // Mostly words with a true beginning: the others go no further.
      std::vector<std::byte> word(random() % (fabric::Fabric::kLongestWord + 8));
      for (std::byte& byte : word) byte = static_cast<std::byte>(random());
      const FailureWord head{.number = static_cast<std::uint32_t>(random() % 3),
                             .part = static_cast<std::uint8_t>(random() % 5),
                             .parts = static_cast<std::uint8_t>(random() % 6)};
      if (random() % 8 != 0 && word.size() > sizeof(head)) {
        std::memcpy(word.data(), &head, sizeof(head));
      }
      whole += heard.take(word) ? 1 : 0;
      ASSERT_LE(heard.why().size(), FailureWord::kMostParts * kFailureTextOfWord);
      ASSERT_TRUE(std::ranges::all_of(heard.why(), [](char c) { return c >= ' ' && c <= '~'; }));
    }
  }
  EXPECT_GT(whole, 200);
}

}  // namespace
}  // namespace faultline::nccl
