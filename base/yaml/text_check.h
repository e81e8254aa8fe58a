#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/yaml/document.h"

namespace faultline::yaml {

/// What is wrong with `text` before any parser sees it: too big, empty, binary, not UTF-8.
std::optional<Problem> checkText(std::string_view text, int source, const Wanted& wanted);

/// `text` on one line: control characters and broken UTF-8 replaced, and cut after `longest` bytes.
std::string oneLine(std::string_view text, std::size_t longest);

/// A user's text as part of a message: one line of at most 60 bytes.
std::string shortened(std::string_view text);

}  // namespace faultline::yaml
