#pragma once

#include <cstdint>

/// 16-bit floats and their conversions, without a branch, so that loops over them vectorise.
///
/// Always inlined: this header is compiled for several instruction sets, and no function of it may
/// be left for the linker to choose from.
#define FAULTLINE_ALWAYS_INLINE [[gnu::always_inline]] inline

namespace faultline::reduction {

/// IEEE 754 binary16.
struct F16 {
  std::uint16_t bits;
};

/// The upper half of a binary32.
struct Bf16 {
  std::uint16_t bits;
};

/// What every NaN becomes when it is rounded to 16 bits: instruction sets differ in which bits of a
/// NaN they keep, results must not.
inline constexpr std::uint16_t kF16NaN = 0x7e00;
inline constexpr std::uint16_t kBf16NaN = 0x7fc0;

/// Exact.
FAULTLINE_ALWAYS_INLINE float widen(F16 half) {
  constexpr std::uint32_t kExponent = 0x7c00U << 13;  // of infinities and NaNs
  constexpr std::uint32_t kRebias = (127U - 15) << 23;
  constexpr std::uint32_t kSmallestNormal = 113U << 23;  // 2^-14
  const std::uint32_t magnitude = (half.bits & 0x7fffU) << 13;
  const std::uint32_t exponent = magnitude & kExponent;
  const std::uint32_t normal = magnitude + kRebias;
  const std::uint32_t special = normal + kRebias;  // to the exponent of all ones
  // Subnormals: with an exponent put in front, which is then subtracted again.
  const float rebuilt = __builtin_bit_cast(float, magnitude + kSmallestNormal) -
                        __builtin_bit_cast(float, kSmallestNormal);
  const auto subnormal = __builtin_bit_cast(std::uint32_t, rebuilt);
  const std::uint32_t value = exponent == kExponent ? special : exponent == 0 ? subnormal : normal;
  return __builtin_bit_cast(float, value | (half.bits & 0x8000U) << 16);
}

FAULTLINE_ALWAYS_INLINE float widen(Bf16 half) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(half.bits) << 16);
}

/// To nearest, ties to even; too large becomes infinite; every NaN the one above.
FAULTLINE_ALWAYS_INLINE void narrow(float value, F16& half) {
  constexpr std::uint32_t kInfinity = 0xffU << 23;
  constexpr std::uint32_t kTooLarge = (127U + 16) << 23;             // 2^16: rounds to infinity
  constexpr std::uint32_t kSmallestNormal = 113U << 23;              // 2^-14
  constexpr std::uint32_t kAlign = (127U - 15 + 24 - 11 + 1) << 23;  // 0.5: its last bit is 2^-24
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // Subnormals: the addition rounds at the right bit.
  const float aligned = __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, kAlign);
  const std::uint32_t subnormal = __builtin_bit_cast(std::uint32_t, aligned) - kAlign;
  const std::uint32_t odd = (magnitude >> 13) & 1;
  const std::uint32_t normal = (magnitude - ((127U - 15) << 23) + 0xfff + odd) >> 13;
  const std::uint32_t finite = magnitude < kSmallestNormal ? subnormal : normal;
  const std::uint32_t rounded = magnitude >= kTooLarge ? 0x7c00U : finite;
  const std::uint32_t result = rounded | (bits >> 16 & 0x8000U);
  half.bits = static_cast<std::uint16_t>(magnitude > kInfinity ? kF16NaN : result);
}

FAULTLINE_ALWAYS_INLINE void narrow(float value, Bf16& half) {
  constexpr std::uint32_t kInfinity = 0xffU << 23;
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t odd = bits >> 16 & 1;
  const std::uint32_t rounded = (bits + 0x7fff + odd) >> 16;
  half.bits = static_cast<std::uint16_t>((bits & 0x7fffffffU) > kInfinity ? kBf16NaN : rounded);
}

}  // namespace faultline::reduction
