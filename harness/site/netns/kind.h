#pragma once

#include "harness/site/kind.h"

namespace faultline::netns {

/// A network namespace per node, on this machine.
extern const site::Kind kKind;

}  // namespace faultline::netns
