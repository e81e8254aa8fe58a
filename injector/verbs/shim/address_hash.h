#pragma once

#include <cstddef>
#include <cstdint>

namespace faultline::injector::verbs::shim {

/// Which of 2^bits places the object has that is at this address, or the one of a number in it
/// (Knuth's multiplicative hashing: the upper bits of the product depend on all of the address).
inline std::size_t placeOf(const void* address, unsigned bits, std::uint32_t number = 0) {
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
  constexpr unsigned kWord = 64;
  return ((reinterpret_cast<std::uintptr_t>(address) ^ number) * kGoldenRatio) >> (kWord - bits);
}

}  // namespace faultline::injector::verbs::shim
