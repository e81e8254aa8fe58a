#pragma once

#include <string_view>

#include "base/status.h"
#include "reports/result.h"

namespace faultline::run {

/// What the experiment of a transcript came to. kInvalidArgument, with the line, where the text is
/// none, or is not whole.
Result<reports::ScenarioResult> replay(std::string_view transcript);

}  // namespace faultline::run
