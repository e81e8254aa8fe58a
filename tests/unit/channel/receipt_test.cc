#include "resilient_ccl/channel/receipt.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace faultline::channel {
namespace {

TEST(ReceiptTest, AgreesWithASetForAnyOrderOfArrival) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Receipt receipt;
    std::set<std::uint64_t> arrived;
    for (int i = 0; i < 500; ++i) {
      const std::uint64_t number = receipt.base + random.below(Receipt::kReach + 1);
      ASSERT_TRUE(receipt.reaches(number));
      ASSERT_EQ(receipt.add(number), arrived.insert(number).second) << "seed " << seed;
      for (std::uint64_t n = receipt.base < 70 ? 0 : receipt.base - 70; n < receipt.base + 70;
           ++n) {
        ASSERT_EQ(receipt.has(n), arrived.contains(n)) << "seed " << seed << " number " << n;
      }
    }
  }
}

TEST(ReceiptTest, ANumberIsNewOnce) {
  Receipt receipt;
  EXPECT_TRUE(receipt.add(1));
  EXPECT_FALSE(receipt.add(1));
  EXPECT_TRUE(receipt.add(0));
  EXPECT_FALSE(receipt.add(0));
  EXPECT_EQ(receipt.base, 2u);
}

TEST(ReceiptTest, OlderCopiesAreOvertaken) {
  Receipt older, newer;
  older.add(0);
  newer.add(0);
  newer.add(2);
  EXPECT_TRUE(newer.covers(older));
  EXPECT_FALSE(older.covers(newer));
  older.add(1);
  EXPECT_TRUE(older.covers(newer) != newer.covers(older));
}

}  // namespace
}  // namespace faultline::channel
