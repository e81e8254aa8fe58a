#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <vector>

#include "base/unique_fd.h"

namespace faultline::test {

/// A process, told from later ones with the same number by the time at which it started.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
};

/// `root` and all its descendants, read from /proc.
std::vector<ProcessId> processTree(pid_t root);

/// Whether the process is gone; a zombie, which holds nothing but its number, counts as gone.
bool isGone(const ProcessId& process);

/// Descriptors on the network namespaces in which these processes run or which they hold open, each
/// once, without the caller's own. No help of theirs is needed: /proc/PID/fd shows it.
std::vector<UniqueFd> networkNamespacesOf(const std::vector<ProcessId>& processes);

}  // namespace faultline::test
