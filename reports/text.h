#pragma once

#include <string>
#include <string_view>

namespace faultline::reports {

/// Stands where a table has no value.
inline constexpr const char* kDash = "-";
/// Indentation of JSON files.
inline constexpr int kJsonSpaces = 1;

/// Valid UTF-8 without what XML 1.0 forbids and without what commands a terminal or reorders text
/// (isCommand): what does not fit becomes U+FFFD. Names and messages come from users, programs and
/// kernels; any byte can be in them.
std::string cleanText(std::string_view text);

}  // namespace faultline::reports
