#pragma once

#include <cstdint>

namespace faultline::workload {

/// Never the result of sums of integer data, and a quiet NaN as f32 and (twice) as f64: arithmetic
/// on it stays NaN and is seen by every check.
inline constexpr std::uint32_t kPoisonWord = 0xfffd15ea;

/// Fills a buffer with kPoisonWord before an operation, so that what the operation did not write
/// is noticed. bytes is a multiple of 4, the buffer aligned to 4.
void poison(void* buffer, std::int64_t bytes);

/// How many 4-byte words of the buffer are still poison.
std::int64_t countPoison(const void* buffer, std::int64_t bytes);

}  // namespace faultline::workload
