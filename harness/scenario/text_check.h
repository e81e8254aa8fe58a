#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/scenario/document.h"

namespace faultline::scenario {

/// What is wrong with `text` before any parser sees it: too big, empty, binary, not UTF-8.
std::optional<Problem> checkText(std::string_view text, int source);

/// `text` fit for one line of a message: at most 60 bytes, control characters replaced.
std::string shortened(std::string_view text);

}  // namespace faultline::scenario
