#pragma once

#include <string>

namespace faultline {

/// What can be read of a file of the kernel: all of it (up to 64 MiB; it never waits), or what came
/// before an error, as of a file in /proc whose process ends meanwhile. "" where there is no such
/// file. Never throws for that, as the iterators of a stream do.
std::string fileText(const std::string& path);

}  // namespace faultline
