#include "resilient_ccl/nccl/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

#include "base/cgroup.h"
#include "base/file_text.h"

namespace faultline::nccl {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

/// What one cgroup may use. In version 2 "200000 100000", or "max 100000", in version 1 two files.
double quotaOf(const std::filesystem::path& group) {
  std::istringstream words(fileText(group / "cpu.max") + " " +
                           fileText(group / "cpu.cfs_quota_us") + " " +
                           fileText(group / "cpu.cfs_period_us"));
  double quota = 0, period = 0;
  words >> quota >> period;  // fails for "max"; -1 is no quota either
  return words && quota > 0 && period > 0 ? quota / period : kNoQuota;
}

/// The least of the process's cgroups.
double quotaOfProcess(const std::string& root) {
  double quota = kNoQuota;
  for (const std::filesystem::path& group : ownCgroups("cpu", root)) {
    quota = std::min(quota, quotaOf(group));
  }
  return quota;
}

int affinity() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  // More processors than a cpu_set_t has: enough for any number of threads.
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return CPU_SETSIZE;
  return CPU_COUNT(&usable);
}

}  // namespace

int usableProcessors(const std::string& root) {
  const double quota = std::ceil(std::min<double>(quotaOfProcess(root), CPU_SETSIZE));
  return std::max(1, std::min(affinity(), static_cast<int>(quota)));
}

}  // namespace faultline::nccl
