#pragma once

#include <string_view>

namespace faultline {

/// Version of the project, e.g. "0.1.0".
std::string_view versionNumber();

/// The commit that the program was built from, abbreviated; "-dirty" is appended when tracked files
/// differed from it, and it is "unknown" outside of a git checkout.
std::string_view gitCommit();

}  // namespace faultline
