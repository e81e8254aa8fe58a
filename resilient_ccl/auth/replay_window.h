#pragma once

#include <cstdint>

namespace faultline::auth {

/// Which numbers of a sequence 1, 2, 3, ... have been seen, as far back as it remembers: each is
/// taken once, in any order, and one that is too old to be remembered never (the anti-replay window
/// of RFC 4303, section 3.4.3).
class ReplayWindow {
 public:
  /// Numbers that may still come after a higher one has.
  static constexpr std::uint64_t kReach = 64;

  /// True the first time for a number in reach.
  bool accept(std::uint64_t number) {
    if (number == 0) return false;
    if (number > highest_) {
      const std::uint64_t step = number - highest_;
      seen_ = step < kReach ? (seen_ << step) | 1 : 1;
      highest_ = number;
      return true;
    }
    const std::uint64_t age = highest_ - number;
    if (age >= kReach || ((seen_ >> age) & 1) != 0) return false;
    seen_ |= std::uint64_t{1} << age;
    return true;
  }

 private:
  std::uint64_t highest_ = 0;
  std::uint64_t seen_ = 0;  // bit i: highest_ - i
};

}  // namespace faultline::auth
