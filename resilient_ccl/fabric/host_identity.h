#pragma once

#include <string>

namespace faultline::fabric {

/// What tells the node of this process from all others: the kernel's boot identifier and the
/// network namespace of the calling thread. Two network namespaces of one kernel are two nodes:
/// each has NICs of its own. Empty when the kernel does not say.
std::string hostIdentity();

}  // namespace faultline::fabric
