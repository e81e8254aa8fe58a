#pragma once

#include <span>
#include <string>

namespace faultline::nccl_bench {

/// Whether one of these interfaces is down or has no carrier, as the kernel says now (SIOCGIFFLAGS,
/// of this process's network namespace). One that there is not counts as down.
bool anyPortDown(std::span<const std::string> interfaces);

}  // namespace faultline::nccl_bench
