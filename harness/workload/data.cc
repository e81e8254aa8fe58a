#include "harness/workload/data.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <type_traits>

#include "base/random.h"
#include "resilient_ccl/reduction/half.h"

namespace faultline::workload {
namespace {

using reduction::Bf16;
using reduction::F16;
using reduction::ReduceOp;

/// One 64-bit word per (seed, iteration, rank), far from those of neighbours.
std::uint64_t streamOf(const DataKey& key, int rank) {
  return Random::mix(Random::mix(Random::mix(key.seed) + key.iteration) +
                     static_cast<std::uint64_t>(rank) + 1);
}

/// Small integer of an element. 32-bit arithmetic without branches, so that the loops vectorise;
/// the multipliers are those of the finaliser of MurmurHash3 (Appleby).
inline std::int32_t smallInteger(std::uint32_t stream, std::uint32_t index) {
  constexpr int kIntegerBits = std::bit_width(2U * kIntegerLimit - 1);
  std::uint32_t word = (index ^ stream) * 0x85ebca6bU;
  word = (word ^ (word >> 13)) * 0xc2b2ae35U;
  return static_cast<std::int32_t>(word >> (32 - kIntegerBits)) - kIntegerLimit;
}

/// A gradient may have more than 2^32 elements: the upper half of the index selects the stream.
std::uint32_t stream32(std::uint64_t stream, std::int64_t index) {
  return static_cast<std::uint32_t>(
      Random::mix(stream + (static_cast<std::uint64_t>(index) >> 32)));
}

/// Work is done in blocks: small enough for the first-level cache, and inside a block the upper
/// half of the index is constant.
constexpr std::int64_t kBlock = 2048;

/// Calls f(first element in the buffer, index in the gradient, count) for each block.
template <typename F>
void forBlocks(std::int64_t count, std::int64_t firstIndex, F f) {
  constexpr std::int64_t kStreamSpan = std::int64_t{1} << 32;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t index = firstIndex + done;
    const std::int64_t untilNextStream = kStreamSpan - index % kStreamSpan;
    const std::int64_t size = std::min({kBlock, count - done, untilNextStream});
    f(done, index, size);
    done += size;
  }
}

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, F16> || std::is_same_v<T, Bf16>;

template <typename T>
T element(std::int32_t value) {
  if constexpr (kIsHalf<T>) {
    T half;
    narrow(static_cast<float>(value), half);
    return half;
  } else {
    return static_cast<T>(value);
  }
}

/// What contributions are reduced in: halves in 32 bits, all else in its own type.
template <typename T>
using Wide = std::conditional_t<kIsHalf<T>, float, T>;

template <typename T>
bool isElement(T found, Wide<T> expected) {
  if constexpr (kIsHalf<T>) {
    return widen(found) == expected;
  } else {
    return found == expected;
  }
}

/// Integers wrap around.
template <ReduceOp op, typename W>
W combine(W a, W b) {
  using Calculation = std::conditional_t<std::is_integral_v<W>, std::uint64_t, W>;
  if constexpr (op == ReduceOp::kMin) return b < a ? b : a;
  if constexpr (op == ReduceOp::kMax) return a < b ? b : a;
  if constexpr (op == ReduceOp::kProd) {
    return static_cast<W>(static_cast<Calculation>(a) * static_cast<Calculation>(b));
  }
  return static_cast<W>(static_cast<Calculation>(a) + static_cast<Calculation>(b));
}

/// A sum as the average that the type can hold.
template <typename T>
Wide<T> average(Wide<T> sum, int ranks) {
  const auto quotient = static_cast<Wide<T>>(sum / static_cast<Wide<T>>(ranks));
  if constexpr (kIsHalf<T>) {
    T rounded;
    narrow(quotient, rounded);
    return widen(rounded);
  } else {
    return quotient;
  }
}

template <typename T>
void fillIntegersTyped(T* buffer, std::int64_t count, std::int64_t firstIndex,
                       std::uint64_t stream) {
  forBlocks(count, firstIndex, [&](std::int64_t at, std::int64_t index, std::int64_t size) {
    const std::uint32_t low = stream32(stream, index);
    const auto first = static_cast<std::uint32_t>(index);
    T* __restrict out = buffer + at;
    for (std::int64_t i = 0; i < size; ++i) {
      out[i] = element<T>(smallInteger(low, first + static_cast<std::uint32_t>(i)));
    }
  });
}

template <ReduceOp op, typename T>
CheckResult checkTyped(const T* buffer, std::int64_t count, std::int64_t firstIndex,
                       const DataKey& key, const Contributors& from) {
  CheckResult result;
  result.checked = count;
  std::array<Wide<T>, kBlock> expected;
  forBlocks(count, firstIndex, [&](std::int64_t at, std::int64_t index, std::int64_t size) {
    const auto first = static_cast<std::uint32_t>(index);
    for (int contributor = 0; contributor < from.ranks; ++contributor) {
      const std::uint32_t low = stream32(streamOf(key, from.rank(contributor)), index);
      const auto value = [&](std::int64_t i) {
        return static_cast<Wide<T>>(smallInteger(low, first + static_cast<std::uint32_t>(i)));
      };
      if (contributor == 0) {
        for (std::int64_t i = 0; i < size; ++i) expected[static_cast<std::size_t>(i)] = value(i);
        continue;
      }
      for (std::int64_t i = 0; i < size; ++i) {
        auto& sum = expected[static_cast<std::size_t>(i)];
        sum = combine<op>(sum, value(i));
      }
    }
    if constexpr (op == ReduceOp::kAvg) {
      for (std::int64_t i = 0; i < size; ++i) {
        auto& sum = expected[static_cast<std::size_t>(i)];
        sum = average<T>(sum, from.ranks);
      }
    }
    std::int32_t wrong = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      wrong += isElement(buffer[at + i], expected[static_cast<std::size_t>(i)]) ? 0 : 1;
    }
    if (wrong == 0) return;
    if (result.wrong == 0) {
      std::int64_t i = 0;
      while (isElement(buffer[at + i], expected[static_cast<std::size_t>(i)])) ++i;
      result.firstWrong = index + i;
    }
    result.wrong += wrong;
  });
  return result;
}

/// A float from random bits: sign and mantissa as they come, the exponent from the bits above.
template <typename T, typename Bits, int kMantissaBits>
T fullMantissa(std::uint64_t word) {
  constexpr int kExponentBits = sizeof(Bits) * 8 - 1 - kMantissaBits;
  constexpr auto kBias = static_cast<Bits>((std::uint64_t{1} << (kExponentBits - 1)) - 1);
  constexpr Bits kExponents = 8;  // 2^-4 .. 2^3
  const auto mantissa = static_cast<Bits>(word & ((std::uint64_t{1} << kMantissaBits) - 1));
  const auto exponent = static_cast<Bits>((word >> 60) % kExponents + kBias - kExponents / 2);
  const auto sign = static_cast<Bits>(word >> 63) << (sizeof(Bits) * 8 - 1);
  return std::bit_cast<T>(static_cast<Bits>(sign | exponent << kMantissaBits | mantissa));
}

template <typename T>
void fillRandomTyped(T* buffer, std::int64_t count, std::int64_t firstIndex, std::uint64_t stream) {
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;  // SplitMix64's
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::uint64_t>(firstIndex + i);
    const std::uint64_t word = Random::mix(stream + (index + 1) * kStep);
    if constexpr (std::is_same_v<T, float>) {
      buffer[i] = fullMantissa<float, std::uint32_t, 23>(word);
    } else if constexpr (std::is_same_v<T, double>) {
      buffer[i] = fullMantissa<double, std::uint64_t, 52>(word);
    } else if constexpr (std::is_same_v<T, F16>) {
      buffer[i] = fullMantissa<F16, std::uint16_t, 10>(word);
    } else if constexpr (std::is_same_v<T, Bf16>) {
      buffer[i] = fullMantissa<Bf16, std::uint16_t, 7>(word);
    } else {
      buffer[i] = static_cast<T>(word);
    }
  }
}

/// Calls f with the buffer as a pointer to elements of its type; Void is void or const void.
template <typename Void, typename F>
auto withType(reduction::DataType type, Void* buffer, F f) {
  const auto as = [&]<typename T>(T) {
    return f(static_cast<std::conditional_t<std::is_const_v<Void>, const T, T>*>(buffer));
  };
  switch (type) {
    case reduction::DataType::kF32:
      return as(float{});
    case reduction::DataType::kF64:
      return as(double{});
    case reduction::DataType::kI32:
      return as(std::int32_t{});
    case reduction::DataType::kF16:
      return as(F16{});
    case reduction::DataType::kBf16:
      return as(Bf16{});
    case reduction::DataType::kI8:
      return as(std::int8_t{});
    case reduction::DataType::kU8:
      return as(std::uint8_t{});
    case reduction::DataType::kU32:
      return as(std::uint32_t{});
    case reduction::DataType::kU64:
      return as(std::uint64_t{});
    case reduction::DataType::kI64:
      break;
  }
  return as(std::int64_t{});
}

}  // namespace

void fillIntegers(reduction::DataType type, void* buffer, std::int64_t count,
                  std::int64_t firstIndex, const DataKey& key, int rank) {
  withType(type, buffer,
           [&](auto* out) { fillIntegersTyped(out, count, firstIndex, streamOf(key, rank)); });
}

CheckResult checkIntegers(reduction::DataType type, const void* buffer, std::int64_t count,
                          std::int64_t firstIndex, const DataKey& key, const Contributors& from) {
  assert(from.ranks >= 1 && from.ranks <= maxExactRanks(type, from.op));
  return withType(type, buffer, [&](const auto* in) {
    switch (from.op) {
      case ReduceOp::kProd:
        return checkTyped<ReduceOp::kProd>(in, count, firstIndex, key, from);
      case ReduceOp::kMin:
        return checkTyped<ReduceOp::kMin>(in, count, firstIndex, key, from);
      case ReduceOp::kMax:
        return checkTyped<ReduceOp::kMax>(in, count, firstIndex, key, from);
      case ReduceOp::kAvg:
        return checkTyped<ReduceOp::kAvg>(in, count, firstIndex, key, from);
      case ReduceOp::kSum:
        break;
    }
    return checkTyped<ReduceOp::kSum>(in, count, firstIndex, key, from);
  });
}

void fillRandom(reduction::DataType type, void* buffer, std::int64_t count, std::int64_t firstIndex,
                const DataKey& key, int rank) {
  withType(type, buffer,
           [&](auto* out) { fillRandomTyped(out, count, firstIndex, streamOf(key, rank)); });
}

std::int64_t corruptOneElement(reduction::DataType type, void* buffer, std::int64_t count,
                               std::uint64_t seed) {
  assert(count >= 1);
  const auto element =
      static_cast<std::int64_t>(Random(seed).below(static_cast<std::uint64_t>(count)));
  // Little-endian: the first byte holds the lowest bits.
  static_assert(std::endian::native == std::endian::little);
  auto* bytes = static_cast<unsigned char*>(buffer);
  bytes[element * reduction::sizeOf(type)] ^= 1;
  return element;
}

}  // namespace faultline::workload
