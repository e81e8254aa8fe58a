#pragma once

#include <cstdint>

#include "resilient_ccl/comm/reduce.h"

namespace faultline::workload {

/// Which gradient: equal keys give equal data on every machine.
struct DataKey {
  std::uint64_t seed = 0;
  std::uint64_t iteration = 0;
};

/// Integer data are in [-kIntegerLimit, kIntegerLimit), so that sums of up to 2^24 / kIntegerLimit
/// ranks are exact in f32, and with them in every other type.
inline constexpr int kIntegerLimit = 8;
inline constexpr int kMaxExactRanks = (1 << 24) / kIntegerLimit;

/// Writes one rank's contribution as small exact integers. Element i of the buffer is element
/// `firstIndex + i` of the gradient, so that buckets can be filled one by one. Pure in all
/// arguments; neighbouring elements, ranks and iterations differ, so that data from another place
/// or time are noticed.
void fillIntegers(comm::DataType type, void* buffer, std::int64_t count, std::int64_t firstIndex,
                  const DataKey& key, int rank);

struct CheckResult {
  std::int64_t checked = 0;
  std::int64_t wrong = 0;
  std::int64_t firstWrong = -1;  ///< index in the gradient; -1 when nothing is wrong
};

/// Compares every element of a summed gradient with the sum of the contributions of ranks
/// 0 .. ranks-1. ranks <= kMaxExactRanks.
CheckResult checkIntegerSum(comm::DataType type, const void* buffer, std::int64_t count,
                            std::int64_t firstIndex, const DataKey& key, int ranks);

/// Writes one rank's contribution with random full mantissas, both signs, and magnitudes over
/// [1/16, 16): every order of summation gives its own bits. Integers get all their bits at random.
void fillRandom(comm::DataType type, void* buffer, std::int64_t count, std::int64_t firstIndex,
                const DataKey& key, int rank);

/// Flips the lowest bit of one element chosen by the seed and returns its index in the buffer: the
/// self-test of checkers, which must see it. count >= 1.
std::int64_t corruptOneElement(comm::DataType type, void* buffer, std::int64_t count,
                               std::uint64_t seed);

}  // namespace faultline::workload
