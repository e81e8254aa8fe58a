#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>

namespace faultline::nccl {

/// Connections that the other end has closed and had not used. The end of a connection is told for
/// each of its streams, which are those that an end has used: of such a one there are none. Pure.
class ClosedUnused {
 public:
  using Word = std::array<std::byte, 3 * sizeof(std::uint32_t)>;
  /// What tells the other end (Fabric::tell) that a connection is closed. `sends`: here.
  static Word wordOf(std::uint32_t number, bool sends);

  /// What is no such word changes nothing; the peer chooses every byte.
  void take(std::span<const std::byte> word);
  /// `sends`: here, where the other end was to receive.
  bool has(std::uint32_t number, bool sends) const { return closed_.contains({number, sends}); }
  /// It is closed here, too.
  void forget(std::uint32_t number, bool sends) { closed_.erase({number, sends}); }

  /// Beyond so many the oldest are forgotten: numbers rise.
  static constexpr std::size_t kMost = 4096;

 private:
  std::set<std::pair<std::uint32_t, bool>> closed_;
};

}  // namespace faultline::nccl
