#pragma once

#include <string>
#include <string_view>

namespace faultline::reports {

/// Stands where a table has no value.
inline constexpr const char* kDash = "-";
/// Indentation of JSON files.
inline constexpr int kJsonSpaces = 1;

/// Valid UTF-8 without the control characters that XML 1.0 forbids: what does not fit becomes
/// U+FFFD. Names and messages come from users, programs and kernels; any byte can be in them.
std::string cleanText(std::string_view text);

}  // namespace faultline::reports
