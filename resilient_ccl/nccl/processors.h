#pragma once

#include <string>

namespace faultline::nccl {

/// How many processors this process may use: as the scheduler's affinity mask has them, or as many
/// as a container has the time of (the quota of its cgroup and of those above it, version 1 or 2),
/// if that is less, rounded up. Never less than 1. `root`: before /proc and /sys, for tests.
int usableProcessors(const std::string& root = "");

}  // namespace faultline::nccl
