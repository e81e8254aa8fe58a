#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace faultline {

/// The folders of this process's cgroup and of those above it that have files of `controller`
/// ("cpu", "memory", "pids"), in version 1 or 2. Inside of a container its own cgroup may be the
/// root of what is mounted, with a path that is only right outside: some of the folders may not be
/// there. `root`: before /proc and /sys, for tests.
std::vector<std::filesystem::path> ownCgroups(std::string_view controller,
                                              const std::string& root = "");

/// The number in a file of a cgroup; nothing where there is no such file, or no limit ("max").
std::optional<double> cgroupNumber(const std::filesystem::path& file);

}  // namespace faultline
