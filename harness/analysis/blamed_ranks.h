#pragma once

#include <string_view>
#include <vector>

namespace faultline::run {

/// The ranks that the error of a communicator is about: those it names ("rank 1"), without the one
/// at its beginning that says it ("rank 0: ...").
std::vector<int> blamedRanks(std::string_view message);

}  // namespace faultline::run
