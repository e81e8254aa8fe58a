#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace faultline::channel {

/// More would leave no room for records next to the receipts of a datagram.
inline constexpr int kMaxRails = 32;
/// One per rail, and the management network.
inline constexpr int kMaxPaths = kMaxRails + 1;

/// Which of one sender's numbered rounds have come in, path by path: every round leaves once over
/// each path, so that a number that came over one path and not over another was lost there.
/// Absolute, as a receipt is.
struct Hearing {
  /// Rounds up to the newest one that are remembered.
  static constexpr std::uint32_t kReach = 32;
  /// A path on which so many rounds are missing that came elsewhere, and none since, is silent.
  static constexpr int kSilentRounds = 3;

  std::uint32_t newest = 0;
  std::array<std::uint32_t, kMaxPaths> paths{};  ///< bit i: round newest - i came over this path

  /// `round` came over `path`.
  void note(int path, std::uint32_t round) {
    if (round > newest) {
      const std::uint32_t step = round - newest;
      for (std::uint32_t& bits : paths) bits = step < kReach ? bits << step : 0;
      newest = round;
    }
    const std::uint32_t age = newest - round;
    if (age < kReach) paths[path] |= std::uint32_t{1} << age;
  }

  /// Whether a round later than `after` came over `path`.
  bool heardSince(int path, std::uint32_t after) const {
    return paths[path] != 0 &&
           newest - static_cast<std::uint32_t>(std::countr_zero(paths[path])) > after;
  }

  /// Whether at least kSilentRounds rounds, all later than `after`, came over other paths and
  /// neither they nor any later one over `path`.
  bool silent(int path, std::uint32_t after = 0) const {
    std::uint32_t elsewhere = 0;
    for (int other = 0; other < kMaxPaths; ++other) {
      if (other != path) elsewhere |= paths[other];
    }
    std::uint32_t unheard = youngest(static_cast<std::uint32_t>(std::countr_zero(paths[path])));
    unheard &= youngest(newest > after ? newest - after : 0);
    return std::popcount(elsewhere & unheard) >= kSilentRounds;
  }

 private:
  /// The bits of the youngest `count` rounds.
  static constexpr std::uint32_t youngest(std::uint32_t count) {
    return count < kReach ? (std::uint32_t{1} << count) - 1 : ~std::uint32_t{0};
  }
};

}  // namespace faultline::channel
