#include "tests/support/sim_pattern.h"

#include <gtest/gtest.h>

#include <vector>

namespace faultline::test {
namespace {

constexpr std::uint64_t kPatternOf = 7;
constexpr std::size_t kPatternLength = 20;  // two words, and a part of one

TEST(SimPatternTest, EachByteThatIsWrongIsFound) {
  for (std::size_t length = 0; length <= kPatternLength; ++length) {
    std::vector<std::byte> bytes(length);
    fillWithPattern(bytes, kPatternOf);
    EXPECT_EQ(firstWrongByte(bytes, kPatternOf), std::nullopt) << length;
    for (std::size_t i = 0; i < length; ++i) {
      std::vector<std::byte> wrong = bytes;
      wrong[i] ^= std::byte{1};
      EXPECT_EQ(firstWrongByte(wrong, kPatternOf), i) << length;
    }
  }
}

TEST(SimPatternTest, MessagesAndPlacesDiffer) {
  std::vector<std::byte> bytes(kPatternLength);
  fillWithPattern(bytes, kPatternOf);
  EXPECT_NE(firstWrongByte(bytes, kPatternOf + 1), std::nullopt);
  EXPECT_NE(firstWrongByte(std::span(bytes).subspan(8), kPatternOf), std::nullopt);
}

TEST(SimPatternTest, EachByteThatIsNotOverwrittenIsFound) {
  for (std::size_t length = 0; length <= kPatternLength; ++length) {
    std::vector<std::byte> bytes(length);
    overwrite(bytes, std::byte{0xa5});
    EXPECT_TRUE(consistsOf(bytes, std::byte{0xa5})) << length;
    EXPECT_EQ(consistsOf(bytes, std::byte{0x5a}), length == 0);
    for (std::size_t i = 0; i < length; ++i) {
      std::vector<std::byte> other = bytes;
      other[i] = std::byte{0};
      EXPECT_FALSE(consistsOf(other, std::byte{0xa5})) << i << " of " << length;
    }
  }
}

}  // namespace
}  // namespace faultline::test
