#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/site/kind.h"

namespace faultline::site {

/// All kinds of clusters; the first is the one of a scenario that says nothing.
std::span<const Kind* const> kinds();

/// nullptr when there is none of that name.
const Kind* findKind(std::string_view name);

/// The first with this property, which one of them has.
const Kind& firstKind(bool Kind::*property);

/// The first whose nodes can have faults of this kind; nullptr: none.
const Kind* firstKindWith(const injector::FaultKind& fault);

/// What a scenario writes to have a cluster of it: "cluster: {kind: NAME}".
std::string clusterOf(const Kind& kind);

}  // namespace faultline::site
