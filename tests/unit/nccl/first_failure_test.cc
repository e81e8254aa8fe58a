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
  using enum FirstFailure::Kind;
  failure.note("no rail", kCause, kFirstTime);
  failure.note("another rail", kCause, kFirstTime + 1ms);
  failure.note("a neighbour has ended", kConsequence, kFirstTime + FirstFailure::kMemory - 1ms);
  EXPECT_EQ(failure.kept().why, "no rail");
  EXPECT_EQ(failure.number(), 1U);
  failure.note("another", kConsequence, kFirstTime + FirstFailure::kMemory);
  EXPECT_EQ(failure.kept().why, "another");
  EXPECT_EQ(failure.number(), 2U);
}

TEST(FirstFailureTest, ACauseReplacesAConsequence) {
  using enum FirstFailure::Kind;
  FirstFailure failure;
  failure.note("a neighbour has ended", kConsequence, kFirstTime);
  failure.note("another neighbour has ended", kConsequence, kFirstTime);
  EXPECT_EQ(failure.kept().why, "a neighbour has ended");
  failure.note("no rail", kCause, kFirstTime + 1s);
  EXPECT_EQ(failure.kept().why, "no rail");
  EXPECT_EQ(failure.number(), 2U) << "it is told";
  failure.note("no rail, either", kCause, kFirstTime + 2s);
  EXPECT_EQ(failure.kept().why, "no rail");
}

// The job may go on with a new communicator, and fail again for another reason.
TEST(FirstFailureTest, WhatAPeerHasToldIsForgottenAfterATime) {
  HeardFailure heard;
  EXPECT_EQ(heard.why(kFirstTime), "");
  EXPECT_TRUE(heard.take(wordsOf({.number = 1, .why = "no rail"}).front(), kFirstTime));
  EXPECT_EQ(heard.when(), kFirstTime);
  EXPECT_EQ(heard.why(kFirstTime + FirstFailure::kMemory - 1ms), "no rail");
  EXPECT_EQ(heard.why(kFirstTime + FirstFailure::kMemory), "");
}

TEST(FirstFailureTest, ArrivesAsAWholeWhateverTheOrderOfItsWords) {
  std::string why = "vm:2 (10.0.0.3): no rail to vm:7 (10.0.0.2) came back";
  for (int rail = 0; rail < 12; ++rail) why += " (rail " + std::to_string(rail) + ": local_nic)";
  auto words = wordsOf({.number = 3, .why = why});
  ASSERT_GT(words.size(), 1U);
  for (const auto& word : words) EXPECT_LE(word.size(), fabric::Fabric::kLongestWord);
  std::ranges::reverse(words);
  HeardFailure heard;
  EXPECT_FALSE(heard.take(words[0], kFirstTime)) << "it comes again below";
  for (std::size_t i = 0; i < words.size(); ++i) {
    EXPECT_EQ(heard.why(kFirstTime), "") << i;
    EXPECT_EQ(heard.take(words[i], kFirstTime), i + 1 == words.size());
  }
  EXPECT_EQ(heard.why(kFirstTime), why);
}

TEST(FirstFailureTest, WhatIsTooLongIsCutAndSaysSo) {
  HeardFailure heard;
  for (const auto& word : wordsOf({.number = 1, .why = std::string(5000, 'x')}))
    heard.take(word, kFirstTime);
  EXPECT_EQ(heard.why(kFirstTime).size(), FailureWord::kMostParts * kFailureTextOfWord);
  EXPECT_TRUE(heard.why(kFirstTime).ends_with("x..."));
}

TEST(FirstFailureTest, PartsOfTwoFailuresDoNotMix) {
  const auto first = wordsOf({.number = 1, .why = std::string(kFailureTextOfWord + 9, 'a')});
  const auto second = wordsOf({.number = 2, .why = std::string(kFailureTextOfWord + 9, 'b')});
  HeardFailure heard;
  EXPECT_FALSE(heard.take(first[0], kFirstTime));
  EXPECT_FALSE(heard.take(second[1], kFirstTime));
  EXPECT_FALSE(heard.take(first[1], kFirstTime)) << "late, and of one that is over";
  EXPECT_TRUE(heard.take(second[0], kFirstTime));
  EXPECT_EQ(heard.why(kFirstTime), std::string(kFailureTextOfWord + 9, 'b'));
}

TEST(FirstFailureTest, NothingButWhatCanBePrintedComesOfAPeer) {
  HeardFailure heard;
  for (const auto& word : wordsOf({.number = 1, .why = "a\n\x1b[31m%s{}\xff"}))
    heard.take(word, kFirstTime);
  EXPECT_EQ(heard.why(kFirstTime), "a??[31m%s{}?");
}

TEST(FirstFailureTest, OtherWordsChangeNothing) {
  HeardFailure heard;
  EXPECT_FALSE(heard.take({}, kFirstTime));
  EXPECT_FALSE(heard.take(bytesIn("done"), kFirstTime));
  const auto word = wordsOf({.number = 1, .why = "x"}).front();
  for (std::size_t length = 0; length < word.size(); ++length) {
    EXPECT_FALSE(heard.take(std::span(word).first(length), kFirstTime)) << length;
  }
  for (const auto& [part, parts] : {std::pair{0, 0}, {1, 1}, {0, 5}, {4, 5}, {255, 255}}) {
    FailureWord head{.number = 1,
                     .part = static_cast<std::uint8_t>(part),
                     .parts = static_cast<std::uint8_t>(parts)};
    auto bad = word;
    std::memcpy(bad.data(), &head, sizeof(head));
    EXPECT_FALSE(heard.take(bad, kFirstTime)) << part << " of " << parts;
  }
  EXPECT_EQ(heard.why(kFirstTime), "");
  auto longer = word;
  longer.resize(fabric::Fabric::kLongestWord + 1);
  EXPECT_FALSE(heard.take(longer, kFirstTime));
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
      whole += heard.take(word, kFirstTime) ? 1 : 0;
      ASSERT_LE(heard.why(kFirstTime).size(), FailureWord::kMostParts * kFailureTextOfWord);
      ASSERT_TRUE(
          std::ranges::all_of(heard.why(kFirstTime), [](char c) { return c >= ' ' && c <= '~'; }));
    }
  }
  EXPECT_GT(whole, 200);
}

}  // namespace
}  // namespace faultline::nccl
