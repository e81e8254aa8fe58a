#pragma once

#include <string>

namespace faultline::launch {

/// A library of ours that other programs load, beside the program that runs: in `folder` of a
/// build, or where libraries were installed. Empty when it is not there.
std::string findOwnLibrary(const std::string& file, const std::string& folder);
/// The same, where the program itself is in `programs`.
std::string findOwnLibrary(const std::string& file, const std::string& folder,
                           const std::string& programs);

}  // namespace faultline::launch
