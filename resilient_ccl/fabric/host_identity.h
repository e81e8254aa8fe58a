#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace faultline::fabric {

/// What tells the node of this process from all others: the kernel's boot identifier and the
/// network namespace of the calling thread. Two network namespaces of one kernel are two nodes:
/// each has NICs of its own. Empty when the kernel does not say.
std::string hostIdentity();

/// A number for an identity (FNV-1a), equal in all processes; 0 for an empty one.
std::uint64_t fingerprintOf(std::string_view identity);

}  // namespace faultline::fabric
