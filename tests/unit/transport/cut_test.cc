#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "resilient_ccl/transport/rail.h"

namespace faultline::transport {
namespace {

constexpr Bytes kLongest = 64 << 10;
constexpr Bytes kShortest = 8 << 10;

TEST(CutTest, OneRailTakesTheLongestChunks) {
  const Cut cut{kLongest};
  for (const std::uint64_t length : {0, 1, 1000, 65536, 65537, 1 << 20}) {
    EXPECT_EQ(cut.chunkBytes(length), kLongest) << length;
  }
  EXPECT_EQ(cut.chunkCount(0), 1u);
  EXPECT_EQ(cut.chunkCount(65536), 1u);
  EXPECT_EQ(cut.chunkCount(65537), 2u);
}

TEST(CutTest, AMessageOfFewChunksIsCutIntoOnePartForEachRail) {
  for (const std::uint64_t rails : {3, 4, 8}) {
    const Cut cut{kLongest, static_cast<int>(rails)};
    // From where a part is no longer the shortest that there may be.
    for (std::uint64_t length = rails * kShortest; length <= rails * kLongest; ++length) {
      const std::uint64_t part = cut.chunkBytes(length);
      ASSERT_EQ(cut.chunkCount(length), rails) << length;
      ASSERT_LE(part, length / rails + 64) << length << ": as equal as whole lines are";
      ASSERT_EQ(part % 64, 0u) << length;
      ASSERT_EQ(cut.number(length, (rails - 1) * part), rails - 1) << length;
    }
  }
}

TEST(CutTest, PartsAreNeitherTooShortNorTooLong) {
  const Cut cut{kLongest, 4};
  EXPECT_EQ(cut.chunkBytes(1), kShortest);
  EXPECT_EQ(cut.chunkCount(kShortest + 1), 2u);
  EXPECT_EQ(cut.chunkBytes(4 * kLongest), kLongest);
  EXPECT_EQ(cut.chunkCount(4 * kLongest), 4u);
  EXPECT_EQ(cut.chunkBytes(100 * kLongest), kLongest);
  EXPECT_EQ(cut.chunkBytes(std::numeric_limits<std::uint64_t>::max()), kLongest);
  EXPECT_EQ((Cut{100, 4}.chunkBytes(100)), 64u);
}

TEST(CutTest, PartsMayBeAsLongAsChunks) {
  for (const Bytes least : {kLongest, 2 * kLongest}) {
    const Cut whole{kLongest, 4, least};
    EXPECT_EQ(whole.chunkCount(kLongest), 1u);
    EXPECT_EQ(whole.chunkCount(kLongest + 1), 2u);
    EXPECT_EQ(whole.chunkBytes(kLongest + 1), kLongest);
  }
  EXPECT_EQ((Cut{kLongest, 4, 32 << 10}.chunkCount(kLongest)), 2u);
}

TEST(CutTest, AChunkOfAnotherLengthDoesNotFit) {
  const Cut cut{kLongest, 4};
  const ChunkHeader first{.messageLength = 100'000, .length = 25'024};
  const ChunkHeader last{.offset = 75'072, .messageLength = 100'000, .length = 24'928};
  EXPECT_TRUE(fits(first, 100'000, kUnknownLength, cut));
  EXPECT_TRUE(fits(last, 100'000, 100'000, cut));
  EXPECT_FALSE(fits(first, 100'000, kUnknownLength, Cut{kLongest}));
  ChunkHeader lie = last;
  lie.offset -= 64;
  EXPECT_FALSE(fits(lie, 100'000, 100'000, cut));
}

}  // namespace
}  // namespace faultline::transport
