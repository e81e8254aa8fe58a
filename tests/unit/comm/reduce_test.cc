#include "resilient_ccl/comm/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace faultline::comm {
namespace {

template <typename T>
struct TypeOf;
template <>
struct TypeOf<float> {
  static constexpr DataType value = DataType::kF32;
};
template <>
struct TypeOf<double> {
  static constexpr DataType value = DataType::kF64;
};
template <>
struct TypeOf<std::int32_t> {
  static constexpr DataType value = DataType::kI32;
};
template <>
struct TypeOf<std::int64_t> {
  static constexpr DataType value = DataType::kI64;
};

template <typename T>
T reduceOne(ReduceOp op, T a, T b) {
  reduce(TypeOf<T>::value, op, &a, &b, 1);
  return a;
}

template <typename T>
class ReduceTest : public testing::Test {};
using Types = testing::Types<float, double, std::int32_t, std::int64_t>;
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
      reduce(TypeOf<T>::value, op, accumulator.data(), operand.data(), count);
      for (int i = 0; i < count; ++i) {
        const T expected = op == ReduceOp::kSum   ? a(i) + b(i)
                           : op == ReduceOp::kMin ? std::min(a(i), b(i))
                           : op == ReduceOp::kMax ? std::max(a(i), b(i))
                                                  : a(i) * b(i);
        ASSERT_EQ(accumulator[i], expected) << nameOf(op) << " element " << i << " of " << count;
      }
      ASSERT_EQ(accumulator[count], kGuard);
    }
  }
}

TYPED_TEST(ReduceTest, SizeIsTheTypes) {
  EXPECT_EQ(sizeOf(TypeOf<TypeParam>::value), static_cast<std::int64_t>(sizeof(TypeParam)));
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

TEST(ReduceNamesTest, NamesAreReadBack) {
  for (const DataType type : kAllDataTypes) EXPECT_EQ(dataTypeFromName(nameOf(type)), type);
  for (const ReduceOp op : kAllReduceOps) EXPECT_EQ(reduceOpFromName(nameOf(op)), op);
  EXPECT_EQ(dataTypeFromName("f16"), std::nullopt);
  EXPECT_EQ(reduceOpFromName("avg"), std::nullopt);
}

}  // namespace
}  // namespace faultline::comm
