#include "harness/workload/data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <vector>

#include "harness/workload/digest.h"
#include "harness/workload/poison.h"

namespace faultline::workload {
namespace {

using reduction::DataType;
using reduction::ReduceOp;

constexpr DataKey kKey{.seed = 7, .iteration = 3};

struct Buffer {
  Buffer(DataType t, std::int64_t n)
      : type(t), count(n), bytes(static_cast<std::size_t>(n * reduction::sizeOf(t))) {}
  DataType type;
  std::int64_t count;
  std::vector<char> bytes;
  void* data() { return bytes.data(); }
};

Buffer integers(DataType type, std::int64_t count, int rank, std::int64_t first = 0,
                DataKey key = kKey) {
  Buffer buffer(type, count);
  fillIntegers(type, buffer.data(), count, first, key, rank);
  return buffer;
}

Buffer integerSum(DataType type, std::int64_t count, int ranks, std::int64_t first = 0) {
  Buffer sum = integers(type, count, 0, first);
  for (int rank = 1; rank < ranks; ++rank) {
    Buffer other = integers(type, count, rank, first);
    reduction::reduce(type, ReduceOp::kSum, sum.data(), other.data(), count);
  }
  return sum;
}

TEST(IntegerDataTest, SumsOfEveryTypeAndSizeAreRight) {
  for (const DataType type : reduction::kAllDataTypes) {
    for (const std::int64_t count : {0, 1, 7, 2048, 5001}) {
      for (const int ranks : {1, 2, 5, 8}) {
        Buffer sum = integerSum(type, count, ranks, 11);
        const CheckResult result = checkIntegerSum(type, sum.data(), count, 11, kKey, ranks);
        EXPECT_EQ(result.checked, count);
        EXPECT_EQ(result.wrong, 0) << nameOf(type);
        EXPECT_EQ(result.firstWrong, -1);
      }
    }
  }
}

TEST(IntegerDataTest, EveryOperatorIsRightForEveryTypeAndContributor) {
  for (const DataType type : reduction::kAllDataTypes) {
    for (const ReduceOp op : reduction::kAllReduceOps) {
      for (const int ranks : {1, 2, 3}) {
        if (ranks > maxExactRanks(type, op)) continue;
        constexpr std::int64_t kCount = 5001;
        constexpr int kFirstRank = 2;
        Buffer result = integers(type, kCount, kFirstRank);
        for (int rank = kFirstRank + 1; rank < kFirstRank + ranks; ++rank) {
          Buffer other = integers(type, kCount, rank);
          const bool last = rank + 1 == kFirstRank + ranks;
          reduction::reduce({.type = type,
                             .op = op,
                             .target = result.data(),
                             .left = result.data(),
                             .right = other.data(),
                             .count = kCount,
                             .divisor = op == ReduceOp::kAvg && last ? ranks : 1});
        }
        const Contributors from{.firstRank = kFirstRank, .ranks = ranks, .op = op};
        EXPECT_EQ(checkIntegers(type, result.data(), kCount, 0, kKey, from).wrong, 0)
            << nameOf(type) << ' ' << nameOf(op) << ' ' << ranks;
        const std::int64_t corrupt = corruptOneElement(type, result.data(), kCount, 3);
        const CheckResult seen = checkIntegers(type, result.data(), kCount, 0, kKey, from);
        EXPECT_EQ(seen.wrong, 1);
        EXPECT_EQ(seen.firstWrong, corrupt);
      }
    }
  }
}

TEST(IntegerDataTest, TheSumOfSomeRanksIsThatOfThoseOnly) {
  constexpr std::int64_t kCount = 5000;
  const DataKey key{.seed = 3, .iteration = 9};
  const std::vector<int> some{0, 2, 5};
  std::vector<std::int32_t> sum(kCount, 0), part(kCount);
  for (const int rank : some) {
    fillIntegers(reduction::DataType::kI32, part.data(), kCount, 0, key, rank);
    for (std::int64_t i = 0; i < kCount; ++i) sum[i] += part[i];
  }
  const auto wrong = [&](const std::vector<int>& ranks) {
    return checkIntegers(reduction::DataType::kI32, sum.data(), kCount, 0, key,
                         {.ranks = static_cast<int>(ranks.size()), .list = ranks})
        .wrong;
  };
  EXPECT_EQ(wrong(some), 0);
  EXPECT_GT(wrong({0, 1, 2}), kCount / 2);
  EXPECT_GT(wrong({0, 2}), kCount / 2);
}

TEST(IntegerDataTest, OneCorruptElementIsSeenWhereverItIs) {
  for (const DataType type : reduction::kAllDataTypes) {
    Buffer sum = integerSum(type, 5001, 4, 100);
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const std::int64_t element = corruptOneElement(type, sum.data(), sum.count, seed);
      const CheckResult result = checkIntegerSum(type, sum.data(), sum.count, 100, kKey, 4);
      ASSERT_EQ(result.wrong, 1) << nameOf(type);
      ASSERT_EQ(result.firstWrong, 100 + element);
      ASSERT_EQ(corruptOneElement(type, sum.data(), sum.count, seed), element);  // flips it back
    }
  }
}

TEST(IntegerDataTest, DataOfAnotherRankIterationSeedOrPlaceAreWrong) {
  // Sixteen equally likely values: unrelated data agree in one element of 16.
  constexpr std::int64_t kCount = 10000;
  const auto wrong = [](const Buffer& buffer) {
    const CheckResult result =
        checkIntegerSum(DataType::kF32, buffer.bytes.data(), kCount, 0, kKey, 1);
    return static_cast<double>(result.wrong) / kCount;
  };
  EXPECT_EQ(wrong(integers(DataType::kF32, kCount, 0)), 0);
  EXPECT_NEAR(wrong(integers(DataType::kF32, kCount, 1)), 15.0 / 16, 0.02);
  EXPECT_NEAR(wrong(integers(DataType::kF32, kCount, 0, 1)), 15.0 / 16, 0.02);
  EXPECT_NEAR(wrong(integers(DataType::kF32, kCount, 0, 0, {7, 4})), 15.0 / 16, 0.02);
  EXPECT_NEAR(wrong(integers(DataType::kF32, kCount, 0, 0, {8, 3})), 15.0 / 16, 0.02);
  EXPECT_NEAR(wrong(integers(DataType::kF32, kCount, 0, std::int64_t{1} << 32)), 15.0 / 16, 0.02);
}

TEST(IntegerDataTest, BucketsMakeUpTheGradient) {
  Buffer whole = integers(DataType::kI32, 5000, 2);
  Buffer part = integers(DataType::kI32, 1234, 2, 777);
  EXPECT_EQ(std::memcmp(whole.bytes.data() + 777 * 4, part.bytes.data(), part.bytes.size()), 0);
  // Also across the place where the index outgrows 32 bits.
  const std::int64_t edge = (std::int64_t{1} << 32) - 10;
  Buffer across = integers(DataType::kI32, 20, 2, edge);
  Buffer after = integers(DataType::kI32, 10, 2, edge + 10);
  EXPECT_EQ(std::memcmp(across.bytes.data() + 40, after.bytes.data(), 40), 0);
}

TEST(IntegerDataTest, ValuesAreSmallAndEvenlySpread) {
  Buffer buffer = integers(DataType::kI32, 160000, 0);
  std::map<std::int32_t, int> histogram;
  for (std::size_t i = 0; i < buffer.bytes.size(); i += 4) {
    std::int32_t value;
    std::memcpy(&value, &buffer.bytes[i], 4);
    ++histogram[value];
  }
  EXPECT_EQ(histogram.size(), 16u);
  EXPECT_EQ(histogram.begin()->first, -kIntegerLimit);
  for (const auto& [value, times] : histogram) EXPECT_NEAR(times, 10000, 600) << value;
}

TEST(RandomDataTest, IsRepeatableAndDiffersByRankAndIteration) {
  const auto digest = [](DataType type, DataKey key, int rank) {
    Buffer buffer(type, 1000);
    fillRandom(type, buffer.data(), buffer.count, 0, key, rank);
    Digest result;
    result.add(buffer.data(), buffer.bytes.size());
    return result.hex();
  };
  for (const DataType type : reduction::kAllDataTypes) {
    EXPECT_EQ(digest(type, kKey, 0), digest(type, kKey, 0));
    EXPECT_NE(digest(type, kKey, 0), digest(type, kKey, 1));
    EXPECT_NE(digest(type, kKey, 0), digest(type, {7, 4}, 0));
  }
}

template <typename T>
void expectOrderSensitive(DataType type) {
  constexpr std::int64_t kCount = 10000;
  std::vector<T> a(kCount), b(kCount), c(kCount);
  fillRandom(type, a.data(), kCount, 0, kKey, 0);
  fillRandom(type, b.data(), kCount, 0, kKey, 1);
  fillRandom(type, c.data(), kCount, 0, kKey, 2);
  int different = 0;
  int negative = 0;
  for (std::int64_t i = 0; i < kCount; ++i) {
    ASSERT_GE(std::abs(a[i]), T{1} / 16);
    ASSERT_LT(std::abs(a[i]), 16);
    negative += a[i] < 0 ? 1 : 0;
    const T left = (a[i] + b[i]) + c[i];
    const T right = a[i] + (b[i] + c[i]);
    different += left != right ? 1 : 0;
  }
  EXPECT_NEAR(negative, kCount / 2., kCount / 20.);
  EXPECT_GT(different, kCount / 10);
}

TEST(RandomDataTest, TheOrderOfSummationShows) {
  expectOrderSensitive<float>(DataType::kF32);
  expectOrderSensitive<double>(DataType::kF64);
}

// As above, through the reduction: a + b + c and b + c + a.
TEST(RandomDataTest, TheOrderOfSummationShowsIn16BitsToo) {
  constexpr std::int64_t kCount = 10000;
  for (const DataType type : {DataType::kF16, DataType::kBf16}) {
    std::vector<std::vector<std::uint16_t>> of(3, std::vector<std::uint16_t>(kCount));
    for (int rank = 0; rank < 3; ++rank) fillRandom(type, of[rank].data(), kCount, 0, kKey, rank);
    const auto sum = [&](std::vector<std::uint16_t> first, int second, int third) {
      for (const int rank : {second, third}) {
        reduction::reduce(type, ReduceOp::kSum, first.data(), of[rank].data(), kCount);
      }
      return first;
    };
    const auto left = sum(of[0], 1, 2), right = sum(of[1], 2, 0);
    int different = 0;
    for (std::int64_t i = 0; i < kCount; ++i) different += left[i] != right[i] ? 1 : 0;
    EXPECT_GT(different, kCount / 10) << nameOf(type);
  }
}

TEST(DigestTest, IsSha256OfLengthsAndBytes) {
  EXPECT_EQ(Digest().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Digest abc;
  abc.add("abc", 3);  // printf '\3\0\0\0\0\0\0\0abc' | sha256sum
  const std::string once = abc.hex();
  EXPECT_EQ(once, "ce91dc5eec0139adf091900d225971d6ad246a845bad791b5693a9d0d55dd391");
  EXPECT_EQ(once, abc.hex());
  abc.add("", 0);
  EXPECT_NE(once, abc.hex());
  Digest split;
  split.add("ab", 2);
  split.add("c", 1);
  EXPECT_NE(once, split.hex());
}

TEST(PoisonTest, WhatWasNotWrittenIsCounted) {
  std::vector<float> buffer(100);
  poison(buffer.data(), 400);
  EXPECT_EQ(countPoison(buffer.data(), 400), 100);
  EXPECT_TRUE(std::isnan(buffer[5] + 1));
  buffer[5] = 0;
  EXPECT_EQ(countPoison(buffer.data(), 400), 99);
  std::vector<double> wide(3);
  poison(wide.data(), 24);
  EXPECT_TRUE(std::isnan(wide[2]));
  // Poison that is left fails the check of a sum.
  poison(buffer.data(), 400);
  EXPECT_EQ(checkIntegerSum(DataType::kF32, buffer.data(), 100, 0, kKey, 4).wrong, 100);
  for (const DataType type : reduction::kAllDataTypes) {
    if (reduction::sizeOf(type) == 1) continue;  // a byte may look like a sum
    std::vector<std::uint64_t> any(101);
    poison(any.data(), 101 * reduction::sizeOf(type));  // also behind the last whole word
    EXPECT_EQ(checkIntegerSum(type, any.data(), 101, 0, kKey, 4).wrong, 101) << nameOf(type);
  }
}

}  // namespace
}  // namespace faultline::workload
