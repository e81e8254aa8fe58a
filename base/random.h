#pragma once

#include <cstdint>

namespace faultline {

/// SplitMix64 (Steele, Lea, Flood 2014): small, fast, equal on every platform, any seed is good.
/// Everything random in this project comes from a seed through this generator.
class Random {
 public:
  using result_type = std::uint64_t;  // usable with <random> and std::shuffle

  explicit Random(std::uint64_t seed) : state_(seed) {}

  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return ~std::uint64_t{0}; }

  std::uint64_t operator()() {
    state_ += 0x9e3779b97f4a7c15;
    return mix(state_);
  }

  /// Uniform in [0, bound); bound > 0. The bias of the modulus is below 2^-32 for bounds below
  /// 2^32.
  std::uint64_t below(std::uint64_t bound) { return (*this)() % bound; }

  /// Uniform in [0, 1).
  double unit() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

  /// The generator's output function: a good mixer of one 64-bit word, also useful by itself.
  static constexpr std::uint64_t mix(std::uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace faultline
