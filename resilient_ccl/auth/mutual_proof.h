#pragma once

#include <cstddef>
#include <span>

#include "resilient_ccl/auth/authenticator.h"

namespace faultline::auth {

/// How the two ends of a connection prove to each other that they have the same key. The accepting
/// end begins with a challenge that it never used before. The connecting end says its hello, signed
/// together with the challenge; the hello has something that it never said before. The accepting
/// end says its answer, signed together with both. So nothing that was recorded fits another
/// connection, and what one end signs is never what the other end has to sign.
Tag signHello(Authenticator& authenticator, std::span<const std::byte> challenge,
              std::span<const std::byte> hello);
bool verifyHello(Authenticator& authenticator, std::span<const std::byte> challenge,
                 std::span<const std::byte> hello, const Tag& tag);
/// `answer` may be empty: that it is signed says enough.
Tag signAnswer(Authenticator& authenticator, std::span<const std::byte> challenge,
               std::span<const std::byte> hello, std::span<const std::byte> answer = {});
bool verifyAnswer(Authenticator& authenticator, std::span<const std::byte> challenge,
                  std::span<const std::byte> hello, std::span<const std::byte> answer,
                  const Tag& tag);

}  // namespace faultline::auth
