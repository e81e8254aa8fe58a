#pragma once

#include <cstdint>

namespace faultline::schedule {

/// A contiguous range of the collective's buffer, in elements (not bytes).
struct Piece {
  std::int64_t offset = 0;
  std::int64_t count = 0;
};

/// Part `index` of `parts` nearly equal parts of a piece: boundary i lies at floor(count * i /
/// parts), so every rank computes the same integers. Parts differ by at most one element and some
/// are empty when there are fewer elements than parts. 0 <= index < parts.
inline Piece split(Piece whole, std::int64_t parts, std::int64_t index) {
  const std::int64_t quotient = whole.count / parts;
  const std::int64_t rest = whole.count % parts;
  // Splitting the product keeps count * index from overflowing for huge buffers.
  const auto boundary = [&](std::int64_t i) { return quotient * i + rest * i / parts; };
  return {whole.offset + boundary(index), boundary(index + 1) - boundary(index)};
}

}  // namespace faultline::schedule
