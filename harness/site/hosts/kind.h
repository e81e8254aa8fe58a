#pragma once

#include "harness/site/kind.h"

namespace faultline::hosts {

/// Hosts that are there already.
extern const site::Kind kKind;

}  // namespace faultline::hosts
