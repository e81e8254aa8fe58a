#include "resilient_ccl/nccl/closed_unused.h"

#include <bit>
#include <cstring>

namespace faultline::nccl {
namespace {

constexpr std::uint32_t kClosedWord = 0x65736f63;  // "cose"

using Numbers = std::array<std::uint32_t, 3>;  // kClosedWord, connection, whether its sender sends

}  // namespace

ClosedUnused::Word ClosedUnused::wordOf(std::uint32_t number, bool sends) {
  return std::bit_cast<Word>(Numbers{kClosedWord, number, sends ? 1U : 0U});
}

void ClosedUnused::take(std::span<const std::byte> word) {
  Numbers numbers;
  if (word.size() != sizeof(numbers)) return;
  std::memcpy(numbers.data(), word.data(), sizeof(numbers));
  if (numbers[0] != kClosedWord) return;
  closed_.emplace(numbers[1], numbers[2] == 0);
  if (closed_.size() > kMost) closed_.erase(closed_.begin());
}

}  // namespace faultline::nccl
