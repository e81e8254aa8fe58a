#pragma once

#if defined(__F16C__) || defined(__AVX512F__)
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

/// Towards zero for integers. Processors do not divide vectors of integers; a quotient of floats
/// with more bits than the dividend, rounded, never reaches the next integer.
template <typename V>
FAULTLINE_ALWAYS_INLINE V quotient(V value, int divisor) {
  if constexpr (std::is_integral_v<V> && sizeof(V) < sizeof(std::int32_t)) {
    return static_cast<V>(static_cast<float>(value) / static_cast<float>(divisor));
  } else if constexpr (std::is_integral_v<V> && sizeof(V) == sizeof(std::int32_t)) {
    return static_cast<V>(static_cast<double>(value) / divisor);
  } else {
    return value / static_cast<V>(divisor);
  }
}

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
  FAULTLINE_INDEPENDENT
  for (; i < count; ++i) {
    auto value = Operation::apply(load(a[i]), load(b[i]));
    if constexpr (kDivides) value = quotient(value, divisor);
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
