// 16-bit floats against a reference that shares nothing with the code: values are decoded and
// rounded with ldexp, ilogb and nearbyint of doubles.

#include "resilient_ccl/reduction/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.h"
#include "resilient_ccl/reduction/reduce.h"

namespace faultline::reduction {
namespace {

constexpr int kAllHalves = 1 << 16;

struct Format {
  DataType type;
  int mantissaBits;
  int leastExponent;  // of normal numbers
  std::uint16_t quietNaN;

  int bias() const { return 1 - leastExponent; }
  int exponents() const { return 1 << (15 - mantissaBits); }

  double decode(std::uint16_t bits) const {
    const double sign = bits >> 15 ? -1 : 1;
    const int mantissa = bits & ((1 << mantissaBits) - 1);
    const int exponent = (bits & 0x7fff) >> mantissaBits;
    if (exponent == exponents() - 1) return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(mantissa, leastExponent - mantissaBits);
    return sign * std::ldexp(mantissa + (1 << mantissaBits), exponent - bias() - mantissaBits);
  }

  std::uint16_t round(double value) const {
    if (std::isnan(value)) return quietNaN;
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) << 15);
    const auto infinity = static_cast<std::uint16_t>((exponents() - 1) << mantissaBits);
    const double magnitude = std::abs(value);
    if (magnitude == 0) return sign;
    if (std::isinf(magnitude)) return sign | infinity;
    const int exponent = std::max(std::ilogb(magnitude), leastExponent);
    // In units of the last place; a carry into the next exponent is what the sum below gives.
    const auto units =
        static_cast<int>(std::nearbyint(std::ldexp(magnitude, mantissaBits - exponent)));
    const int bits = ((exponent - leastExponent) << mantissaBits) + units;
    return sign | static_cast<std::uint16_t>(std::min<int>(bits, infinity));
  }
};

constexpr Format kF16{DataType::kF16, 10, -14, kF16NaN};
constexpr Format kBf16{DataType::kBf16, 7, -126, kBf16NaN};

float combine(ReduceOp op, float a, float b) {
  if (op != ReduceOp::kSum && op != ReduceOp::kProd && (std::isnan(a) || std::isnan(b))) return NAN;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return a + b;
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMin:
      return b < a ? b : a;
    case ReduceOp::kMax:
      return b > a ? b : a;
  }
  return 0;
}

class HalfTest : public testing::TestWithParam<std::tuple<Format, InstructionSet>> {
 protected:
  HalfTest() : format_(std::get<0>(GetParam())), set_(std::get<1>(GetParam())) {}
  void SetUp() override {
    if (!isSupported(set_)) GTEST_SKIP() << "this processor does not have these instructions";
  }

  std::vector<std::uint16_t> rounded(const std::vector<float>& values) const {
    std::vector<std::uint16_t> result(values.size());
    const std::vector<std::uint16_t> minusZero(values.size(), 0x8000);  // x + -0 is x, for all x
    reduce({.type = format_.type,
            .target = result.data(),
            .left = values.data(),
            .right = minusZero.data(),
            .count = std::ssize(values),
            .leftIsWide = true},
           set_);
    return result;
  }

  const Format format_;
  const InstructionSet set_;
};

TEST_P(HalfTest, EveryValueIsWidenedExactly) {
  std::vector<std::uint16_t> all(kAllHalves), minusZero(kAllHalves, 0x8000);
  for (int i = 0; i < kAllHalves; ++i) all[i] = static_cast<std::uint16_t>(i);
  std::vector<float> wide(kAllHalves);
  reduce({.type = format_.type,
          .target = wide.data(),
          .left = all.data(),
          .right = minusZero.data(),
          .count = kAllHalves,
          .targetIsWide = true},
         set_);
  for (int i = 0; i < kAllHalves; ++i) {
    const double expected = format_.decode(all[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]),
                std::bit_cast<std::uint32_t>(static_cast<float>(expected)))
          << i;
    }
  }
}

TEST_P(HalfTest, EveryValueItsNeighboursAndTheTiesAreRoundedToNearestEven) {
  std::vector<float> values;
  for (int i = 0; i < kAllHalves; ++i) {
    const auto value = static_cast<float>(format_.decode(static_cast<std::uint16_t>(i)));
    const double next = format_.decode(static_cast<std::uint16_t>(i + 1));
    const auto tie = static_cast<float>((format_.decode(static_cast<std::uint16_t>(i)) + next) / 2);
    for (const float at : {value, tie}) {
      values.insert(values.end(),
                    {at, std::nextafter(at, INFINITY), std::nextafter(at, -INFINITY)});
    }
  }
  constexpr float kMax = std::numeric_limits<float>::max();
  for (const float edge : {65519.996F, 65520.0F, 65535.9F, 65536.0F, kMax, 1e-45F}) {
    values.insert(values.end(), {edge, -edge});
  }
  // All over the 32-bit floats, the NaNs too.
  constexpr std::uint32_t kStep = 10'007;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += kStep) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  const std::vector<std::uint16_t> result = rounded(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(result[i], format_.round(values[i]))
        << values[i] << " " << std::bit_cast<std::uint32_t>(values[i]);
  }
}

TEST_P(HalfTest, PairsOfAllKindsAreReducedIn32BitsAndRoundedOnce) {
  constexpr std::uint64_t kSeed = 4;
  constexpr int kPairs = 1'000'003;  // with a rest after whole vectors
  Random random(kSeed);
  std::vector<std::uint16_t> left(kPairs), right(kPairs), result(kPairs);
  for (int i = 0; i < kPairs; ++i) {
    left[i] = static_cast<std::uint16_t>(random.below(kAllHalves));
    right[i] = static_cast<std::uint16_t>(random.below(kAllHalves));
  }
  for (const ReduceOp op : kAllReduceOps) {
    const int divisor = op == ReduceOp::kAvg ? 3 : 1;
    reduce({.type = format_.type,
            .op = op,
            .target = result.data(),
            .left = left.data(),
            .right = right.data(),
            .count = kPairs,
            .divisor = divisor},
           set_);
    for (int i = 0; i < kPairs; ++i) {
      const float value = combine(op, static_cast<float>(format_.decode(left[i])),
                                  static_cast<float>(format_.decode(right[i])));
      ASSERT_EQ(result[i], format_.round(value / static_cast<float>(divisor)))
          << nameOf(op) << " of " << left[i] << " and " << right[i] << ", seed " << kSeed;
    }
  }
}

// 2048 ones: in 16 bits the sum stays where its last place is 2.
TEST_P(HalfTest, AWideSumIsRoundedOnceAtItsEnd) {
  const std::uint16_t one = format_.round(1);
  const int stuck = 2 << format_.mantissaBits;
  for (const int count : {1, 37}) {
    const std::vector<std::uint16_t> ones(count, one);
    std::vector<float> wide(count);
    std::vector<std::uint16_t> narrow(ones), result(count);
    Reduction step{.type = format_.type, .right = ones.data(), .count = count};
    for (int i = 1; i < stuck + 7; ++i) {
      step.left = i == 1 ? static_cast<const void*>(ones.data()) : wide.data();
      step.leftIsWide = i > 1;
      step.targetIsWide = i < stuck + 6;
      step.target = step.targetIsWide ? static_cast<void*>(wide.data()) : result.data();
      reduce(step, set_);
      reduce({.type = format_.type,
              .target = narrow.data(),
              .left = narrow.data(),
              .right = ones.data(),
              .count = count},
             set_);
    }
    EXPECT_EQ(result, std::vector(count, format_.round(stuck + 7)));
    EXPECT_EQ(narrow, std::vector(count, format_.round(stuck)));
  }
}

std::string caseName(const testing::TestParamInfo<HalfTest::ParamType>& info) {
  constexpr std::array kSets{"baseline", "avx2", "avx512"};
  const auto& [format, set] = info.param;
  return std::string(nameOf(format.type)) + "_" + kSets[static_cast<std::size_t>(set)];
}

INSTANTIATE_TEST_SUITE_P(All, HalfTest,
                         testing::Combine(testing::Values(kF16, kBf16),
                                          testing::Values(InstructionSet::kBaseline,
                                                          InstructionSet::kAvx2,
                                                          InstructionSet::kAvx512)),
                         caseName);

// Random bytes are every kind of number, NaNs too. Of two NaNs of 32 or 64 bits either may be kept.
TEST(InstructionSetsTest, AllGiveTheSameBits) {
  constexpr std::uint64_t kSeed = 11;
  constexpr std::int64_t kCount = 10'007;
  Random random(kSeed);
  const auto bytes = [&](std::int64_t size) {
    std::vector<std::uint64_t> words(size / 8 + 1);
    for (std::uint64_t& word : words) word = random();
    return words;
  };
  const auto left = bytes(kCount * 8), right = bytes(kCount * 8);
  const auto sameNaN = [](DataType type, const void* a, const void* b, std::int64_t i) {
    if (type == DataType::kF32) {
      return std::isnan(static_cast<const float*>(a)[i]) &&
             std::isnan(static_cast<const float*>(b)[i]);
    }
    return type == DataType::kF64 && std::isnan(static_cast<const double*>(a)[i]) &&
           std::isnan(static_cast<const double*>(b)[i]);
  };
  int compared = 0;
  for (const InstructionSet set : {InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (!isSupported(set)) continue;
    for (const DataType type : kAllDataTypes) {
      for (const ReduceOp op : kAllReduceOps) {
        std::vector<std::uint64_t> plain(kCount), vectors(kCount);
        Reduction step{.type = type,
                       .op = op,
                       .target = plain.data(),
                       .left = left.data(),
                       .right = right.data(),
                       .count = kCount,
                       .divisor = op == ReduceOp::kAvg ? 7 : 1};
        reduce(step, InstructionSet::kBaseline);
        step.target = vectors.data();
        reduce(step, set);
        const std::int64_t size = sizeOf(type);
        for (std::int64_t i = 0; i < kCount; ++i) {
          const bool same =
              std::memcmp(reinterpret_cast<const char*>(plain.data()) + i * size,
                          reinterpret_cast<const char*>(vectors.data()) + i * size, size) == 0;
          ASSERT_TRUE(same || sameNaN(type, plain.data(), vectors.data(), i))
              << nameOf(type) << " " << nameOf(op) << " element " << i << ", seed " << kSeed;
        }
        ++compared;
      }
    }
  }
  if (compared == 0) GTEST_SKIP() << "this processor has the baseline only";
}

}  // namespace
}  // namespace faultline::reduction
