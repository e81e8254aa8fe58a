#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/scenario/document.h"

namespace faultline::scenario {

/// Puts one `path=value` into the tree. The path is keys and list indexes joined by dots; in a list
/// of names or {name: ...} the name may stand for the index ("strategies.fail_stop.watchdog=2s").
/// The value is YAML. Mappings that are missing on the way are made, so that a key may be given
/// that the file leaves to its default; whether the key exists is for the reader to say.
/// What it puts in is located at `source`.
std::optional<Problem> applyOverride(Node& root, std::string_view assignment, int source);

}  // namespace faultline::scenario
