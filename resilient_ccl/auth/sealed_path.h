#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/auth/replay_window.h"

namespace faultline::auth {

/// Ends every control datagram.
struct Seal {
  std::uint64_t number = 0;  ///< of the datagram on its path and direction, from 1
  Tag tag{};                 ///< of the datagram and the number
};
static_assert(sizeof(Seal) == 24);

/// Both directions of one control path to one peer: what is said on it is sealed, and what comes is
/// believed once. The datagram itself must name source, destination and path: a datagram of another
/// path then never passes for one of this.
class SealedPath {
 public:
  /// What to send behind `datagram`.
  Seal seal(Authenticator& authenticator, std::span<const std::byte> datagram);

  /// The datagram without its seal; nothing when somebody without the key made it, when it was
  /// damaged, or when it has come before.
  std::optional<std::span<const std::byte>> open(Authenticator& authenticator,
                                                 std::span<const std::byte> sealed);

 private:
  std::uint64_t sent_ = 0;
  ReplayWindow received_;
};

}  // namespace faultline::auth
