#pragma once

#include <span>
#include <string_view>

#include "harness/site/kind.h"

namespace faultline::site {

/// All kinds of clusters; the first is the one of a scenario that says nothing.
std::span<const Kind* const> kinds();

/// nullptr when there is none of that name.
const Kind* findKind(std::string_view name);

}  // namespace faultline::site
