#include "resilient_ccl/reduction/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/random.h"

namespace faultline::reduction {
namespace {

template <typename T>
constexpr DataType kTypeOf = std::is_same_v<T, float>           ? DataType::kF32
                             : std::is_same_v<T, double>        ? DataType::kF64
                             : std::is_same_v<T, std::int8_t>   ? DataType::kI8
                             : std::is_same_v<T, std::uint8_t>  ? DataType::kU8
                             : std::is_same_v<T, std::int32_t>  ? DataType::kI32
                             : std::is_same_v<T, std::uint32_t> ? DataType::kU32
                             : std::is_same_v<T, std::int64_t>  ? DataType::kI64
                                                                : DataType::kU64;

template <typename T>
T reduceOne(ReduceOp op, T a, T b) {
  reduce(kTypeOf<T>, op, &a, &b, 1);
  return a;
}

template <typename T>
class ReduceTest : public testing::Test {};
using Types = testing::Types<float, double, std::int8_t, std::uint8_t, std::int32_t, std::uint32_t,
                             std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(ReduceTest, Types);

TYPED_TEST(ReduceTest, EveryOperationAtEveryLengthAndOnlyThere) {
  using T = TypeParam;
  constexpr int kMaxCount = 70;  // past several vector widths and their remainders
  constexpr T kGuard = 77;
  const auto a = [](int i) { return static_cast<T>(i % 13 - 6); };
  const auto b = [](int i) { return static_cast<T>(i % 7 - 3); };
  for (int count = 0; count <= kMaxCount; ++count) {
    for (const ReduceOp op : kAllReduceOps) {
      std::vector<T> accumulator, operand;
      for (int i = 0; i < count; ++i) {
        accumulator.push_back(a(i));
        operand.push_back(b(i));
      }
      accumulator.push_back(kGuard);
      operand.push_back(kGuard);
      reduce(kTypeOf<T>, op, accumulator.data(), operand.data(), count);
      for (int i = 0; i < count; ++i) {
        const T expected = op == ReduceOp::kProd  ? static_cast<T>(a(i) * b(i))
                           : op == ReduceOp::kMin ? std::min(a(i), b(i))
                           : op == ReduceOp::kMax ? std::max(a(i), b(i))
                                                  : static_cast<T>(a(i) + b(i));
        ASSERT_EQ(accumulator[i], expected) << nameOf(op) << " element " << i << " of " << count;
      }
      ASSERT_EQ(accumulator[count], kGuard);
    }
  }
}

TYPED_TEST(ReduceTest, SizeIsTheTypes) {
  EXPECT_EQ(sizeOf(kTypeOf<TypeParam>), static_cast<std::int64_t>(sizeof(TypeParam)));
}

TEST(ReduceIntegersTest, OverflowWraps) {
  constexpr auto kMax32 = std::numeric_limits<std::int32_t>::max();
  constexpr auto kMax64 = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(reduceOne<std::int32_t>(ReduceOp::kSum, kMax32, 1),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(reduceOne<std::int64_t>(ReduceOp::kSum, kMax64, 1),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(reduceOne<std::int32_t>(ReduceOp::kProd, kMax32, 2), -2);
  EXPECT_EQ(reduceOne<std::int64_t>(ReduceOp::kProd, kMax64, 2), -2);
}

TEST(ReduceFloatsTest, NanOnEitherSideGivesNan) {
  for (const ReduceOp op : kAllReduceOps) {
    EXPECT_TRUE(std::isnan(reduceOne<float>(op, NAN, 1))) << nameOf(op);
    EXPECT_TRUE(std::isnan(reduceOne<float>(op, 1, NAN))) << nameOf(op);
    EXPECT_TRUE(std::isnan(reduceOne<double>(op, NAN, 1))) << nameOf(op);
    EXPECT_TRUE(std::isnan(reduceOne<double>(op, 1, NAN))) << nameOf(op);
  }
}

TEST(ReduceFloatsTest, OfTwoZerosTheAccumulatorsStays) {
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    EXPECT_TRUE(std::signbit(reduceOne<float>(op, -0.0F, 0.0F)));
    EXPECT_FALSE(std::signbit(reduceOne<float>(op, 0.0F, -0.0F)));
  }
}

// The end of an average: the sum is divided once, integers towards zero, as C++ does.
TYPED_TEST(ReduceTest, TheLastStepOfAnAverageDivides) {
  using T = TypeParam;
  constexpr T kLowest = std::numeric_limits<T>::lowest(), kHighest = std::numeric_limits<T>::max();
  for (const int divisor : {2, 3, 5, 7, 100, 127}) {
    std::vector<T> left{kLowest, kHighest, 0, 1, 2, 3, 5, 6, 7, 100, 99, kLowest};
    for (int i = 0; i < 200; ++i) left.push_back(static_cast<T>(i - 100));
    const std::vector<T> right(left.size(), 1);
    std::vector<T> result(left.size());
    reduce({.type = kTypeOf<T>,
            .op = ReduceOp::kAvg,
            .target = result.data(),
            .left = left.data(),
            .right = right.data(),
            .count = std::ssize(left),
            .divisor = divisor});
    for (std::size_t i = 0; i < left.size(); ++i) {
      T sum = left[i];
      reduce(kTypeOf<T>, ReduceOp::kSum, &sum, &right[i], 1);
      ASSERT_EQ(result[i], static_cast<T>(sum / static_cast<T>(divisor)))
          << +left[i] << " + 1 over " << divisor;
    }
  }
}

/// Quotients of 64-bit integers are made by multiplication: they must be exact for every number.
template <typename T>
class LongAverageTest : public testing::Test {};
using LongTypes = testing::Types<std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(LongAverageTest, LongTypes);

TYPED_TEST(LongAverageTest, EveryQuotientIsExact) {
  using T = TypeParam;
  Random random(1);
  std::vector<int> divisors;
  for (int d = 2; d <= 1024; ++d) divisors.push_back(d);
  for (const int d : {4095, 65536, 65537, 1 << 30, std::numeric_limits<int>::max()}) {
    divisors.push_back(d);
  }
  for (const int divisor : divisors) {
    const auto d = static_cast<std::uint64_t>(divisor);
    std::vector<T> values;
    const auto around = [&](std::uint64_t value) {
      for (const std::uint64_t each : {value - 1, value, value + 1}) {
        values.push_back(static_cast<T>(each));
        values.push_back(static_cast<T>(0 - each));
      }
    };
    around(0);
    for (int bit = 0; bit < 64; ++bit) around(std::uint64_t{1} << bit);
    const std::uint64_t most = ~std::uint64_t{0};
    for (const std::uint64_t multiple : {d, 2 * d, most / d * d, most / 2 / d * d})
      around(multiple);
    for (int i = 0; i < 200; ++i) {
      around((random() >> random.below(64)) / d * d);
      values.push_back(static_cast<T>(random()));
    }
    const std::vector<T> zeros(values.size(), 0);
    for (const InstructionSet set :
         {InstructionSet::kBaseline, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
      if (!isSupported(set)) continue;
      std::vector<T> quotients(values.size());
      reduce({.type = kTypeOf<T>,
              .op = ReduceOp::kAvg,
              .target = quotients.data(),
              .left = values.data(),
              .right = zeros.data(),
              .count = static_cast<std::int64_t>(values.size()),
              .divisor = divisor},
             set);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(quotients[i], values[i] / static_cast<T>(divisor)) << values[i] << " / " << d;
      }
    }
  }
}

/// Bytes are multiplied, and divided by multiplication, two in a word: every pair and every
/// quotient.
template <typename T>
class ByteTest : public testing::Test {
 protected:
  /// All `kBytes` x `kBytes` pairs.
  static constexpr int kBytes = 256;
  static std::vector<T> all(bool first) {
    std::vector<T> values;
    for (int i = 0; i < kBytes * kBytes; ++i) {
      values.push_back(static_cast<T>(first ? i / kBytes : i % kBytes));
    }
    return values;
  }
  static void forEachSet(const std::function<void(InstructionSet)>& check) {
    for (const InstructionSet set :
         {InstructionSet::kBaseline, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
      if (isSupported(set)) check(set);
    }
  }
};
using ByteTypes = testing::Types<std::int8_t, std::uint8_t>;
TYPED_TEST_SUITE(ByteTest, ByteTypes);

TYPED_TEST(ByteTest, EveryProductIsExact) {
  using T = TypeParam;
  const std::vector<T> left = this->all(true), right = this->all(false);
  this->forEachSet([&](InstructionSet set) {
    std::vector<T> products(left.size());
    reduce({.type = kTypeOf<T>,
            .op = ReduceOp::kProd,
            .target = products.data(),
            .left = left.data(),
            .right = right.data(),
            .count = std::ssize(left)},
           set);
    for (std::size_t i = 0; i < left.size(); ++i) {
      ASSERT_EQ(products[i], static_cast<T>(left[i] * right[i])) << +left[i] << " * " << +right[i];
    }
  });
}

TYPED_TEST(ByteTest, EveryQuotientIsExact) {
  using T = TypeParam;
  std::vector<int> divisors{1000, 65535, 65536, 65537, std::numeric_limits<int>::max()};
  for (int d = 1; d <= 300; ++d) divisors.push_back(d);
  std::vector<T> values;
  for (int i = 0; i < this->kBytes; ++i) values.push_back(static_cast<T>(i));
  const std::vector<T> zeros(values.size(), 0);
  this->forEachSet([&](InstructionSet set) {
    for (const int divisor : divisors) {
      std::vector<T> quotients(values.size());
      reduce({.type = kTypeOf<T>,
              .op = ReduceOp::kAvg,
              .target = quotients.data(),
              .left = values.data(),
              .right = zeros.data(),
              .count = std::ssize(values),
              .divisor = divisor},
             set);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(quotients[i], static_cast<T>(values[i] / divisor))
            << +values[i] << " / " << divisor;
      }
    }
  });
}

TEST(ReduceNamesTest, NamesAreReadBack) {
  for (const DataType type : kAllDataTypes) EXPECT_EQ(dataTypeFromName(nameOf(type)), type);
  for (const ReduceOp op : kAllReduceOps) EXPECT_EQ(reduceOpFromName(nameOf(op)), op);
  EXPECT_EQ(dataTypeFromName("f8"), std::nullopt);
  EXPECT_EQ(reduceOpFromName("subtract"), std::nullopt);
}

}  // namespace
}  // namespace faultline::reduction
