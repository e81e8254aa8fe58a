#pragma once

#include <cstdint>

namespace faultline::channel {

/// Which numbers of a sequence 0, 1, 2, ... have arrived: all below `base`, and those of
/// base + 1 + i whose bit i is set (base itself is the first one missing). Absolute, so that a lost
/// or repeated copy does no harm; it also serves as the ledger that drops duplicates.
struct Receipt {
  /// Numbers beyond `base` that can be remembered: nobody may have more than this many open.
  static constexpr std::uint64_t kReach = 64;

  std::uint64_t base = 0;
  std::uint64_t beyond = 0;

  bool has(std::uint64_t number) const {
    if (number < base) return true;
    if (number == base || number - base > kReach) return false;
    return (beyond >> (number - base - 1)) & 1;
  }

  /// False when `number` is too far ahead to be remembered (the sender broke the rule).
  bool reaches(std::uint64_t number) const { return number <= base + kReach; }

  /// Notes `number`; false when it was there already. Needs reaches(number).
  bool add(std::uint64_t number) {
    if (has(number)) return false;
    if (number > base) {
      beyond |= std::uint64_t{1} << (number - base - 1);
      return true;
    }
    ++base;
    while (beyond & 1) {
      ++base;
      beyond >>= 1;
    }
    beyond >>= 1;  // the bit of the new base, which is missing
    return true;
  }

  /// Whether this receipt knows at least as much as `other`: older copies are overtaken.
  bool covers(const Receipt& other) const {
    if (base != other.base) return base > other.base;
    return (beyond & other.beyond) == other.beyond;
  }

  friend bool operator==(const Receipt&, const Receipt&) = default;
};

}  // namespace faultline::channel
