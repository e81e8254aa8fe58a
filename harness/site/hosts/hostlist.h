#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace faultline::hosts {

/// More names than this are a mistake.
inline constexpr std::size_t kMostExpanded = std::size_t{1} << 16;

/// The names that Slurm writes in one word, as `scontrol show hostnames` has them (with more than
/// two pairs of brackets in another order): "rack[1-2]n[01-03,7],login" are rack1n01, rack1n02, ...
/// rack2n07, login. A number has at least as many digits as the first of its range.
/// kInvalidArgument, with what is wrong.
Result<std::vector<std::string>> expandHostlist(std::string_view list);

}  // namespace faultline::hosts
