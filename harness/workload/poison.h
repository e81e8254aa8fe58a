#pragma once

#include <cstddef>
#include <cstdint>

namespace faultline::workload {

/// Never the result of sums of integer data (but of one byte), and a quiet NaN as f32, (twice) as
/// f64, and in every second f16 and bf16: arithmetic on it stays NaN and is seen by every check. Of
/// one byte it may look like a sum; several in a row do not.
inline constexpr std::uint32_t kPoisonWord = 0xfffd15ea;

/// Fills a buffer with kPoisonWord before an operation, so that what the operation did not write
/// is noticed. The buffer is aligned to 4.
void poison(void* buffer, std::int64_t bytes);

/// The least size of a buffer for so many bytes that ends with a whole word of poison.
std::size_t wholePoisonWords(std::int64_t bytes);

/// How many whole 4-byte words of the buffer are still poison.
std::int64_t countPoison(const void* buffer, std::int64_t bytes);

}  // namespace faultline::workload
