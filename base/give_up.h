#pragma once

#include <functional>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace faultline {

/// Asked by what waits, every kGiveUpInterval or more often: true, nobody waits for it any more
/// (Ctrl-C), and it ends with kAborted. Once true it stays so. Empty: it is always waited for.
using GiveUp = std::function<bool()>;

/// The longest that a wait may go on without asking.
inline constexpr Duration kGiveUpInterval = 100ms;

/// kAborted once nobody waits for `what` any more: "boot the hosts".
inline Status unlessGivenUp(const GiveUp& giveUp, std::string_view what) {
  if (!giveUp || !giveUp()) return okStatus();
  return errorf(Code::kAborted, "{}: nobody waits for it any more", what);
}

}  // namespace faultline
