#include "resilient_ccl/nccl/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

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

/// The least of a cgroup's and of those above it. Inside of a container its own cgroup may be the
/// root of what is mounted, with a path that is only right outside.
double quotaOfAll(const std::filesystem::path& mounted, const std::filesystem::path& path) {
  double quota = quotaOf(mounted);
  std::filesystem::path group = mounted;
  for (const std::filesystem::path& part : path.relative_path()) {
    group /= part;
    quota = std::min(quota, quotaOf(group));
  }
  return quota;
}

double quotaOfProcess(const std::string& root) {
  double quota = kNoQuota;
  std::istringstream lines(fileText(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {  // "0::/path", "4:cpu,cpuacct:/path"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    const std::filesystem::path mounted = root + "/sys/fs/cgroup";
    if (controllers == ",,") quota = std::min(quota, quotaOfAll(mounted, path));
    if (controllers.find(",cpu,") != std::string::npos) {
      quota = std::min(quota, quotaOfAll(mounted / "cpu", path));
    }
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
