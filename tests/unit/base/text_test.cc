#include "base/text.h"

#include <gtest/gtest.h>

#include <array>

namespace faultline {
namespace {

constexpr std::array<std::string_view, 4> kKnown{"iterations", "kind", "how", "at"};

TEST(TextTest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(closestWord("iteratons", kKnown), "iterations");
  EXPECT_EQ(closestWord("iterations ", kKnown), "iterations");
  EXPECT_EQ(closestWord("knid", kKnown), "kind");
  EXPECT_EQ(closestWord("hwo", kKnown), "how");
  EXPECT_EQ(closestWord("iter", kKnown), "iterations") << "unfinished";
  EXPECT_EQ(closestWord("ite", kKnown), "") << "too many begin so";
  EXPECT_EQ(closestWord("colour", kKnown), "");
  EXPECT_EQ(closestWord("x", kKnown), "") << "one letter must not become any short word";
  EXPECT_EQ(closestWord(std::string(100'000, 'i'), kKnown), "");
  EXPECT_EQ(closestWord("", kKnown), "");
}

TEST(TextTest, WrapsAtBlanks) {
  const std::string text = wrapText(std::string(60, 'a') + " " + std::string(60, 'b'), 4);
  EXPECT_EQ(text, std::string(60, 'a') + "\n    " + std::string(60, 'b'));
  EXPECT_EQ(wrapText("a b", 4), "a b");
  EXPECT_EQ(wrapText("", 4), "");
}

}  // namespace
}  // namespace faultline
