#pragma once

#include <map>
#include <string>
#include <string_view>

#include "reports/result.h"

namespace faultline::reports {

/// Text as it may stand between tags and in quoted attributes; see cleanText.
std::string escapedForHtml(const std::string& text);

/// JSON as text that is safe inside a script element, whatever it says.
std::string escapedForScript(const Json& json);

/// `page` with each {{name}} replaced, in one pass: inserted text is never looked at again. Names
/// without a value vanish.
std::string filled(std::string_view page, const std::map<std::string, std::string_view>& values);

}  // namespace faultline::reports
