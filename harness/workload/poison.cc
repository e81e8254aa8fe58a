#include "harness/workload/poison.h"

#include <algorithm>
#include <cassert>

namespace faultline::workload {
namespace {

constexpr auto kWordBytes = static_cast<std::int64_t>(sizeof kPoisonWord);

}  // namespace

void poison(void* buffer, std::int64_t bytes) {
  assert(bytes % kWordBytes == 0);
  std::fill_n(static_cast<std::uint32_t*>(buffer), bytes / kWordBytes, kPoisonWord);
}

std::int64_t countPoison(const void* buffer, std::int64_t bytes) {
  assert(bytes % kWordBytes == 0);
  const auto* words = static_cast<const std::uint32_t*>(buffer);
  return std::count(words, words + bytes / kWordBytes, kPoisonWord);
}

}  // namespace faultline::workload
