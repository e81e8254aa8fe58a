#include "harness/workload/poison.h"

#include <algorithm>
#include <cstring>

namespace faultline::workload {
namespace {

constexpr auto kWordBytes = static_cast<std::int64_t>(sizeof kPoisonWord);

}  // namespace

void poison(void* buffer, std::int64_t bytes) {
  auto* const words = static_cast<std::uint32_t*>(buffer);
  std::fill_n(words, bytes / kWordBytes, kPoisonWord);
  const auto rest = static_cast<std::size_t>(bytes % kWordBytes);
  if (rest > 0) std::memcpy(words + bytes / kWordBytes, &kPoisonWord, rest);
}

std::size_t wholePoisonWords(std::int64_t bytes) {
  return static_cast<std::size_t>((bytes + kWordBytes - 1) / kWordBytes * kWordBytes);
}

std::int64_t countPoison(const void* buffer, std::int64_t bytes) {
  const auto* words = static_cast<const std::uint32_t*>(buffer);
  return std::count(words, words + bytes / kWordBytes, kPoisonWord);
}

}  // namespace faultline::workload
