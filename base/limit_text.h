#pragma once

#include <string>

namespace faultline {

/// The soft limit of a resource (RLIMIT_NOFILE, ...), or "unlimited".
std::string limitText(int resource);

/// The first word of a file of the kernel's; empty: there is none.
std::string firstWordOf(const std::string& path);

}  // namespace faultline
