#include "resilient_ccl/nccl/closed_unused.h"

#include <gtest/gtest.h>

namespace faultline::nccl {
namespace {

TEST(ClosedUnusedTest, AConnectionIsKnownByItsNumberAndDirection) {
  ClosedUnused closed;
  closed.take(ClosedUnused::wordOf(7, /*sends=*/true));
  EXPECT_TRUE(closed.has(7, /*sends=*/false)) << "who sends there receives here";
  EXPECT_FALSE(closed.has(7, /*sends=*/true));
  EXPECT_FALSE(closed.has(8, /*sends=*/false));
  closed.take(ClosedUnused::wordOf(8, /*sends=*/false));
  closed.forget(7, /*sends=*/false);
  EXPECT_FALSE(closed.has(7, /*sends=*/false));
  EXPECT_TRUE(closed.has(8, /*sends=*/true));
}

TEST(ClosedUnusedTest, OtherWordsChangeNothing) {
  ClosedUnused closed;
  auto word = ClosedUnused::wordOf(7, /*sends=*/true);
  closed.take({});
  closed.take(std::span(word).first(word.size() - 1));
  word[0] ^= std::byte{1};
  closed.take(word);
  EXPECT_FALSE(closed.has(7, /*sends=*/false));
}

TEST(ClosedUnusedTest, TheLatestAreKept) {
  ClosedUnused closed;
  for (std::uint32_t number = 0; number <= ClosedUnused::kMost; ++number) {
    closed.take(ClosedUnused::wordOf(number, /*sends=*/true));
  }
  EXPECT_FALSE(closed.has(0, /*sends=*/false));
  EXPECT_TRUE(closed.has(1, /*sends=*/false));
  EXPECT_TRUE(closed.has(ClosedUnused::kMost, /*sends=*/false));
}

}  // namespace
}  // namespace faultline::nccl
