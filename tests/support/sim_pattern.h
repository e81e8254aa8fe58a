#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/random.h"

// What the simulated messages consist of. Eight bytes at a time, and whole blocks by the functions
// of the C library: under a sanitizer each byte that is touched by itself costs a check of its own,
// and these were half of the time of the channel's tests.

namespace faultline::test {

/// Eight bytes of a message, at `8 * word` of it.
inline std::uint64_t patternOf(std::uint64_t message, std::uint64_t word) {
  return Random::mix(message * 0x10001 + word);
}

/// Fills all of it with the message's pattern.
inline void fillWithPattern(std::span<std::byte> bytes, std::uint64_t message) {
  for (std::size_t begin = 0; begin < bytes.size(); begin += sizeof(std::uint64_t)) {
    const std::uint64_t word = patternOf(message, begin / sizeof(std::uint64_t));
    std::memcpy(bytes.data() + begin, &word, std::min(sizeof word, bytes.size() - begin));
  }
}

/// The first byte that is not the message's, if there is one.
inline std::optional<std::size_t> firstWrongByte(std::span<const std::byte> bytes,
                                                 std::uint64_t message) {
  for (std::size_t begin = 0; begin < bytes.size(); begin += sizeof(std::uint64_t)) {
    const std::uint64_t word = patternOf(message, begin / sizeof(std::uint64_t));
    const std::size_t length = std::min(sizeof word, bytes.size() - begin);
    if (std::memcmp(bytes.data() + begin, &word, length) == 0) continue;
    std::byte expected[sizeof word];
    std::memcpy(expected, &word, sizeof word);
    std::size_t i = 0;
    while (bytes[begin + i] == expected[i]) ++i;
    return begin + i;
  }
  return std::nullopt;
}

/// Writes `value` into all of it.
inline void overwrite(std::span<std::byte> bytes, std::byte value) {
  if (!bytes.empty()) std::memset(bytes.data(), std::to_integer<int>(value), bytes.size());
}

/// Whether all of it is `value`.
inline bool consistsOf(std::span<const std::byte> bytes, std::byte value) {
  return bytes.empty() || (bytes.front() == value &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace faultline::test
