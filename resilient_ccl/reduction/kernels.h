#pragma once

#if defined(__F16C__) || defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <type_traits>

#include "resilient_ccl/reduction/half.h"
#include "resilient_ccl/reduction/kernel.h"

// The loops. Included by one file per instruction set, so everything here is without a name outside
// of that file, and nothing of the standard library is called.

namespace faultline::reduction {
namespace {

// --- elements in memory and in arithmetic ---

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, F16> || std::is_same_v<T, Bf16>;

template <typename T>
FAULTLINE_ALWAYS_INLINE auto load(const T& element) {
  if constexpr (kIsHalf<T>) {
    return widen(element);
  } else {
    return element;
  }
}

template <typename T, typename V>
FAULTLINE_ALWAYS_INLINE void store(V value, T& element) {
  if constexpr (kIsHalf<T>) {
    narrow(value, element);
  } else {
    element = value;
  }
}

// --- operations: of two elements, or of two vectors of floats ---

struct Sum {
  template <typename V>
  FAULTLINE_ALWAYS_INLINE static V apply(V a, V b) {
    if constexpr (std::is_integral_v<V>) {
      using Unsigned = std::make_unsigned_t<V>;
      return static_cast<V>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};

struct Prod {
  template <typename V>
  FAULTLINE_ALWAYS_INLINE static V apply(V a, V b) {
    if constexpr (std::is_integral_v<V>) {
      // At least as wide as int, into which narrow types would be promoted, and overflow.
      using Unsigned = std::make_unsigned_t<decltype(a * b)>;
      return static_cast<V>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
    } else {
      return a * b;
    }
  }
};

// `b < a ? b : a` is one instruction, which lets a NaN in `a` stay; `b != b` is true for NaN only.

struct Min {
  template <typename V>
  FAULTLINE_ALWAYS_INLINE static V apply(V a, V b) {
    if constexpr (std::is_integral_v<V>) {
      return b < a ? b : a;
    } else {
      const V smaller = b < a ? b : a;
      return b != b ? b : smaller;
    }
  }
};

struct Max {
  template <typename V>
  FAULTLINE_ALWAYS_INLINE static V apply(V a, V b) {
    if constexpr (std::is_integral_v<V>) {
      return b > a ? b : a;
    } else {
      const V larger = b > a ? b : a;
      return b != b ? b : larger;
    }
  }
};

// --- division of integers, towards zero; processors do not divide vectors of them ---

template <typename V>
inline constexpr bool kIsLong = std::is_integral_v<V> && sizeof(V) == sizeof(std::int64_t);

/// Of 64 bits: n / d = (t + ((n - t) >> 1)) >> shift, t = the upper half of n * magic, for every n
/// (Granlund and Montgomery 1994, figure 4.1). d >= 2.
struct LongDivision {
  FAULTLINE_ALWAYS_INLINE explicit LongDivision(int divisor) {
    const auto d = static_cast<std::uint64_t>(divisor);
    const int logarithm = 64 - __builtin_clzll(d - 1);  // rounded up
    using Wide = unsigned __int128;
    magic = static_cast<std::uint64_t>((Wide{(std::uint64_t{1} << logarithm) - d} << 64) / d) + 1;
    shift = logarithm - 1;
  }
  FAULTLINE_ALWAYS_INLINE std::uint64_t operator()(std::uint64_t n) const {
    const auto t = static_cast<std::uint64_t>(static_cast<unsigned __int128>(n) * magic >> 64);
    return (t + ((n - t) >> 1)) >> shift;
  }
  FAULTLINE_ALWAYS_INLINE std::int64_t operator()(std::int64_t n) const {
    const auto bits = static_cast<std::uint64_t>(n);
    const auto sign = static_cast<std::uint64_t>(n >> 63);
    return static_cast<std::int64_t>(((*this)((bits ^ sign) - sign) ^ sign) - sign);
  }

  std::uint64_t magic = 0;
  int shift = 0;
};

/// Whatever is not a long integer: by dividing. A quotient of floats with more bits than the
/// dividend, rounded, never reaches the next integer.
template <typename V>
struct Division {
  FAULTLINE_ALWAYS_INLINE explicit Division(int by) : divisor(by) {}
  FAULTLINE_ALWAYS_INLINE V operator()(V value) const {
    if constexpr (std::is_integral_v<V> && sizeof(V) < sizeof(std::int32_t)) {
      return static_cast<V>(static_cast<float>(value) / static_cast<float>(divisor));
    } else if constexpr (std::is_integral_v<V>) {
      return static_cast<V>(static_cast<double>(value) / divisor);
    } else {
      return value / static_cast<V>(divisor);
    }
  }
  int divisor;
};

template <typename V>
using DivisionOf = std::conditional_t<kIsLong<V>, LongDivision, Division<V>>;

// The upper half of a product of 64 bits, from products of 32, which vectors have.
#if defined(__AVX512F__)
#define FAULTLINE_LONG_WIDTH 8
using Longs = std::uint64_t __attribute__((vector_size(64)));
FAULTLINE_ALWAYS_INLINE Longs productOfLowerHalves(Longs a, Longs b) {
  return reinterpret_cast<Longs>(
      _mm512_mul_epu32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
#elif defined(__AVX2__)
#define FAULTLINE_LONG_WIDTH 4
using Longs = std::uint64_t __attribute__((vector_size(32)));
FAULTLINE_ALWAYS_INLINE Longs productOfLowerHalves(Longs a, Longs b) {
  return reinterpret_cast<Longs>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
#endif

#if defined(FAULTLINE_LONG_WIDTH)
FAULTLINE_ALWAYS_INLINE Longs quotientOf(Longs n, const LongDivision& division) {
  const Longs lower = Longs{} + division.magic, upper = lower >> 32;
  const Longs nUpper = n >> 32;
  const Longs a = productOfLowerHalves(nUpper, lower) + (productOfLowerHalves(n, lower) >> 32);
  const Longs b = productOfLowerHalves(n, upper) + (a & 0xffffffffU);
  const Longs t = productOfLowerHalves(nUpper, upper) + (a >> 32) + (b >> 32);
  return (t + ((n - t) >> 1)) >> division.shift;
}

template <typename V>
FAULTLINE_ALWAYS_INLINE Longs quotient(Longs n, const LongDivision& division) {
  if constexpr (std::is_unsigned_v<V>) return quotientOf(n, division);
  const Longs sign = Longs{} - (n >> 63);
  return (quotientOf((n ^ sign) - sign, division) ^ sign) - sign;
}
#endif

// --- bytes: two of them in a word of 16 bits, of which vectors have products ---

#if defined(__AVX512BW__)
#define FAULTLINE_BYTE_WIDTH 64
using Bytes8 = std::uint8_t __attribute__((vector_size(64)));
using Words = std::uint16_t __attribute__((vector_size(64)));
FAULTLINE_ALWAYS_INLINE Words upperHalfOfProducts(Words a, Words b) {
  return reinterpret_cast<Words>(
      _mm512_mulhi_epu16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
#elif defined(__AVX2__)
#define FAULTLINE_BYTE_WIDTH 32
using Bytes8 = std::uint8_t __attribute__((vector_size(32)));
using Words = std::uint16_t __attribute__((vector_size(32)));
FAULTLINE_ALWAYS_INLINE Words upperHalfOfProducts(Words a, Words b) {
  return reinterpret_cast<Words>(
      _mm256_mulhi_epu16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
#endif

#if defined(FAULTLINE_BYTE_WIDTH)
/// Of each byte, signed or not: the lower 8 bits are the same.
FAULTLINE_ALWAYS_INLINE Bytes8 productOfBytes(Bytes8 a, Bytes8 b) {
  const Words x = reinterpret_cast<Words>(a), y = reinterpret_cast<Words>(b);
  return reinterpret_cast<Bytes8>(((x * y) & 0x00ff) | ((x & 0xff00) * (y >> 8)));
}

/// n / d for n < 256 and d >= 2 is the upper half of n * magic, magic = floor(65535 / d) + 1 =
/// (65536
/// + e) / d with 0 <= e < d: the next quotient is reached when n * e >= 65536, which n * e < 256 *
/// d excludes up to d = 256; above, magic <= 256, and n * magic < 65536 gives 0.
template <typename V>
FAULTLINE_ALWAYS_INLINE Bytes8 quotientOfBytes(Bytes8 n, Words magic) {
  Bytes8 sign{};
  if constexpr (std::is_signed_v<V>) {
    sign = Bytes8{} - (n >> 7);
    n = (n ^ sign) - sign;
  }
  const Words x = reinterpret_cast<Words>(n);
  const Words lower = upperHalfOfProducts(x & 0x00ff, magic);
  const Words upper = upperHalfOfProducts(x >> 8, magic) << 8;
  const Bytes8 quotients = reinterpret_cast<Bytes8>(lower | upper);
  if constexpr (std::is_signed_v<V>) return (quotients ^ sign) - sign;
  return quotients;
}
#endif

// --- loops ---

/// `left` may be `target`: nothing depends on an iteration before.
#if defined(__clang__)
#define FAULTLINE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define FAULTLINE_INDEPENDENT _Pragma("GCC ivdep")
#endif

// Vectors of binary16 have instructions of their own, which no compiler finds by itself.
#if defined(__AVX512F__)
#define FAULTLINE_F16_WIDTH 16
using Floats = float __attribute__((vector_size(64)));
FAULTLINE_ALWAYS_INLINE Floats loadVector(const F16* at) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}
FAULTLINE_ALWAYS_INLINE Floats loadVector(const float* at) { return _mm512_loadu_ps(at); }
FAULTLINE_ALWAYS_INLINE void storeVector(Floats value, float* at) { _mm512_storeu_ps(at, value); }
FAULTLINE_ALWAYS_INLINE void storeVector(Floats value, F16* at) {
  const __mmask16 isNaN = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512 canonical = _mm512_mask_mov_ps(value, isNaN, _mm512_set1_ps(__builtin_nanf("")));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at),
                      _mm512_cvtps_ph(canonical, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#elif defined(__F16C__)
#define FAULTLINE_F16_WIDTH 8
using Floats = float __attribute__((vector_size(32)));
FAULTLINE_ALWAYS_INLINE Floats loadVector(const F16* at) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}
FAULTLINE_ALWAYS_INLINE Floats loadVector(const float* at) { return _mm256_loadu_ps(at); }
FAULTLINE_ALWAYS_INLINE void storeVector(Floats value, float* at) { _mm256_storeu_ps(at, value); }
FAULTLINE_ALWAYS_INLINE void storeVector(Floats value, F16* at) {
  const __m256 isNaN = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
  const __m256 canonical = _mm256_blendv_ps(value, _mm256_set1_ps(__builtin_nanf("")), isNaN);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at),
                   _mm256_cvtps_ph(canonical, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#endif

template <typename T, typename Left, typename Target, typename Operation, bool kDivides>
void loop(void* target, const void* left, const void* right, std::int64_t count, int divisor) {
  auto* out = static_cast<Target*>(target);
  const auto* a = static_cast<const Left*>(left);
  const auto* __restrict b = static_cast<const T*>(right);
  std::int64_t i = 0;
#if defined(FAULTLINE_F16_WIDTH)
  if constexpr (std::is_same_v<T, F16>) {
    const Floats divisors = Floats{} + static_cast<float>(divisor);
    for (; i + FAULTLINE_F16_WIDTH <= count; i += FAULTLINE_F16_WIDTH) {
      Floats value = Operation::apply(loadVector(a + i), loadVector(b + i));
      if constexpr (kDivides) value /= divisors;
      storeVector(value, out + i);
    }
  }
#endif
#if defined(FAULTLINE_LONG_WIDTH)
  if constexpr (kDivides && kIsLong<T>) {
    const LongDivision division(divisor);
    for (; i + FAULTLINE_LONG_WIDTH <= count; i += FAULTLINE_LONG_WIDTH) {
      Longs x, y;
      __builtin_memcpy(&x, a + i, sizeof x);
      __builtin_memcpy(&y, b + i, sizeof y);
      x = quotient<T>(x + y, division);
      __builtin_memcpy(out + i, &x, sizeof x);
    }
  }
#endif
#if defined(FAULTLINE_BYTE_WIDTH)
  if constexpr (sizeof(T) == 1 && (kDivides || std::is_same_v<Operation, Prod>)) {
    const auto reciprocal = static_cast<std::uint16_t>(0xffff / (kDivides ? divisor : 2) + 1);
    const Words magic = Words{} + reciprocal;
    const std::int64_t end = kDivides && divisor < 2 ? 0 : count;
    for (; i + FAULTLINE_BYTE_WIDTH <= end; i += FAULTLINE_BYTE_WIDTH) {
      Bytes8 x, y;
      __builtin_memcpy(&x, a + i, sizeof x);
      __builtin_memcpy(&y, b + i, sizeof y);
      if constexpr (kDivides) {
        x = quotientOfBytes<T>(x + y, magic);
      } else {
        x = productOfBytes(x, y);
      }
      __builtin_memcpy(out + i, &x, sizeof x);
    }
  }
#endif
  using Value = decltype(Operation::apply(load(a[0]), load(b[0])));
  const DivisionOf<Value> division(kDivides ? divisor : 2);
  FAULTLINE_INDEPENDENT
  for (; i < count; ++i) {
    auto value = Operation::apply(load(a[i]), load(b[i]));
    if constexpr (kDivides) value = division(value);
    store(value, out[i]);
  }
}

// --- choice ---

template <typename T, typename Operation, bool kDivides>
Kernel formOf(const KernelKey& key) {
  if constexpr (kIsHalf<T>) {
    if (key.leftIsWide && key.targetIsWide) return loop<T, float, float, Operation, kDivides>;
    if (key.leftIsWide) return loop<T, float, T, Operation, kDivides>;
    if (key.targetIsWide) return loop<T, T, float, Operation, kDivides>;
  }
  return loop<T, T, T, Operation, kDivides>;
}

template <typename T>
Kernel operationOf(const KernelKey& key) {
  switch (key.op) {
    case ReduceOp::kSum:
      break;
    case ReduceOp::kProd:
      return formOf<T, Prod, false>(key);
    case ReduceOp::kMin:
      return formOf<T, Min, false>(key);
    case ReduceOp::kMax:
      return formOf<T, Max, false>(key);
    case ReduceOp::kAvg:
      if (key.divides) return formOf<T, Sum, true>(key);
      break;
  }
  return formOf<T, Sum, false>(key);
}

Kernel kernelOf(const KernelKey& key) {
  switch (key.type) {
    case DataType::kF16:
      return operationOf<F16>(key);
    case DataType::kBf16:
      return operationOf<Bf16>(key);
    case DataType::kF32:
      return operationOf<float>(key);
    case DataType::kF64:
      return operationOf<double>(key);
    case DataType::kI8:
      return operationOf<std::int8_t>(key);
    case DataType::kU8:
      return operationOf<std::uint8_t>(key);
    case DataType::kI32:
      return operationOf<std::int32_t>(key);
    case DataType::kU32:
      return operationOf<std::uint32_t>(key);
    case DataType::kI64:
      return operationOf<std::int64_t>(key);
    case DataType::kU64:
      return operationOf<std::uint64_t>(key);
  }
  return nullptr;
}

}  // namespace
}  // namespace faultline::reduction
