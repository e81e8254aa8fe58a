#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"

namespace faultline {

/// Levels of lists and objects in each other that JSON may have. What reads, copies or prints a
/// document calls itself for each level, and a result has about ten.
inline constexpr std::size_t kMostJsonLevels = 200;

/// kInvalidArgument, with line and column, where a JSON text is nested deeper. Looks at brackets
/// outside of strings only: whether it is JSON is for the parser to say.
Status checkJsonDepth(std::string_view text);

}  // namespace faultline
