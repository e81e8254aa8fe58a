#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace faultline::hosts {

/// Looks for the greeting of an agent (wire/greeting.h) in all that has come from a host so far.
/// Nothing: more is needed. ok: it is of our version, of the program and of the messages, and
/// nothing stands before or behind it. Any other is an error that says what came instead, and what
/// to do. Pure.
std::optional<Status> readGreeting(std::string_view said, const std::string& host);

/// The beginning of what has come, on one line, for messages.
std::string excerpt(std::string_view said);

}  // namespace faultline::hosts
