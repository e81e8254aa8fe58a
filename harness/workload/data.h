#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "resilient_ccl/reduction/reduce.h"

namespace faultline::workload {

/// Which gradient: equal keys give equal data on every machine.
struct DataKey {
  std::uint64_t seed = 0;
  std::uint64_t iteration = 0;
};

/// Integer data are in [-kIntegerLimit, kIntegerLimit). Integers of 8 bits and unsigned ones wrap
/// around, in contributions and sums alike.
inline constexpr int kIntegerLimit = 8;
/// As many as f32 can count.
inline constexpr int kMaxExactRanks = (1 << 24) / kIntegerLimit;

/// So many contributions of integer data add up exactly, in whatever order: floats have 2^11 (f16),
/// 2^8 (bf16) or 2^24 (f32) integers in a row.
constexpr int maxExactRanks(reduction::DataType type) {
  if (type == reduction::DataType::kF16) return (1 << 11) / kIntegerLimit;
  if (type == reduction::DataType::kBf16) return (1 << 8) / kIntegerLimit;
  return kMaxExactRanks;
}

/// Writes one rank's contribution as small exact integers. Element i of the buffer is element
/// `firstIndex + i` of the gradient, so that buckets can be filled one by one. Pure in all
/// arguments; neighbouring elements, ranks and iterations differ, so that data from another place
/// or time are noticed.
void fillIntegers(reduction::DataType type, void* buffer, std::int64_t count,
                  std::int64_t firstIndex, const DataKey& key, int rank);

struct CheckResult {
  std::int64_t checked = 0;
  std::int64_t wrong = 0;
  std::int64_t firstWrong = -1;  ///< index in the gradient; -1 when nothing is wrong
};

/// Whose contributions a result is made of, and how. What is only moved is the sum of one.
struct Contributors {
  int firstRank = 0;
  int ranks = 1;
  reduction::ReduceOp op = reduction::ReduceOp::kSum;
  /// These ranks instead, `ranks` of them; empty: the `ranks` from `firstRank` on.
  std::span<const int> list{};

  int rank(int index) const { return list.empty() ? firstRank + index : list[index]; }
};

/// So many factors of integer data have an exact product: each has 3 bits besides its sign.
/// Integers wrap around.
constexpr int maxExactFactors(reduction::DataType type) {
  constexpr int kBitsOfFactor = std::bit_width(static_cast<unsigned>(kIntegerLimit)) - 1;
  if (type == reduction::DataType::kF16) return 11 / kBitsOfFactor;
  if (type == reduction::DataType::kBf16) return 8 / kBitsOfFactor;
  if (type == reduction::DataType::kF32) return 24 / kBitsOfFactor;
  if (type == reduction::DataType::kF64) return 53 / kBitsOfFactor;
  return kMaxExactRanks;
}

/// The most contributors whose result is exact.
constexpr int maxExactRanks(reduction::DataType type, reduction::ReduceOp op) {
  return op == reduction::ReduceOp::kProd ? maxExactFactors(type) : maxExactRanks(type);
}

/// Compares every element with what the integer data of `from` must give. from.ranks is at most
/// maxExactRanks(type, from.op).
CheckResult checkIntegers(reduction::DataType type, const void* buffer, std::int64_t count,
                          std::int64_t firstIndex, const DataKey& key, const Contributors& from);

/// The same for the sum of ranks 0 .. ranks-1.
inline CheckResult checkIntegerSum(reduction::DataType type, const void* buffer, std::int64_t count,
                                   std::int64_t firstIndex, const DataKey& key, int ranks) {
  return checkIntegers(type, buffer, count, firstIndex, key, {.firstRank = 0, .ranks = ranks});
}

/// Writes one rank's contribution with random full mantissas, both signs, and magnitudes over
/// [1/16, 16): every order of summation gives its own bits. Integers get all their bits at random.
void fillRandom(reduction::DataType type, void* buffer, std::int64_t count, std::int64_t firstIndex,
                const DataKey& key, int rank);

/// Flips the lowest bit of one element chosen by the seed and returns its index in the buffer: the
/// self-test of checkers, which must see it. count >= 1.
std::int64_t corruptOneElement(reduction::DataType type, void* buffer, std::int64_t count,
                               std::uint64_t seed);

}  // namespace faultline::workload
