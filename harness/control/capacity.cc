#include "harness/control/capacity.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "base/cgroup.h"
#include "base/file_text.h"

namespace faultline::run {
namespace {

/// The tighter one.
void tighten(std::optional<Room>& room, double left, const std::string& limit) {
  if (!room || left < room->left) room = Room{std::max(0.0, left), limit};
}

/// The number behind `key` in lines of "key number", "key: number kB".
std::optional<double> valueOf(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    double value = 0;
    if (words >> name >> value && (name == key || name == std::string(key) + ":")) return value;
  }
  return std::nullopt;
}

std::optional<double> numberIn(const std::string& path) { return cgroupNumber(path); }

std::optional<Room> memoryLeft(const std::string& root) {
  std::optional<Room> room;
  if (const auto available = valueOf(fileText(root + "/proc/meminfo"), "MemAvailable")) {
    constexpr double kKib = 1024;
    tighten(room, *available * kKib, "MemAvailable of /proc/meminfo");
  }
  for (const std::filesystem::path& group : ownCgroups("memory", root)) {
    const std::string stat = fileText((group / "memory.stat").string());
    // Files that were read and may be forgotten count as used.
    const double cache =
        valueOf(stat, "inactive_file").value_or(valueOf(stat, "total_inactive_file").value_or(0));
    for (const auto& [most, used] : {std::pair("memory.max", "memory.current"),
                                     std::pair("memory.limit_in_bytes", "memory.usage_in_bytes")}) {
      const auto limit = cgroupNumber(group / most);
      if (!limit) continue;
      const double current = cgroupNumber(group / used).value_or(0);
      tighten(room, *limit - current + std::min(cache, current),
              fmt::format("{} of {}", most, group.string()));
    }
  }
  return room;
}

std::optional<Room> threadsLeft(const std::string& root) {
  std::optional<Room> room;
  // "0.20 0.18 0.12 1/80 11206": the number behind the slash is that of all threads.
  const std::string load = fileText(root + "/proc/loadavg");
  const std::size_t slash = load.find('/');
  double running = 0;
  if (slash != std::string::npos) std::istringstream(load.substr(slash + 1)) >> running;
  for (const char* name : {"threads-max", "pid_max"}) {
    const auto most = numberIn(fmt::format("{}/proc/sys/kernel/{}", root, name));
    if (most) tighten(room, *most - running, fmt::format("kernel.{}", name));
  }
  for (const std::filesystem::path& group : ownCgroups("pids", root)) {
    const auto most = cgroupNumber(group / "pids.max");
    if (!most) continue;
    tighten(room, *most - cgroupNumber(group / "pids.current").value_or(0),
            fmt::format("pids.max of {}", group.string()));
  }
  rlimit limit{};
  // Root of the machine is not bound by it.
  const bool bound =
      ::geteuid() != 0 || fileText("/proc/self/uid_map").find("4294967295") == std::string::npos;
  if (bound && ::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    tighten(room, static_cast<double>(limit.rlim_cur), "ulimit -u");
  }
  return room;
}

}  // namespace

Capacity readCapacity(const std::string& root) {
  Capacity capacity;
  capacity.memory = memoryLeft(root);
  capacity.threads = threadsLeft(root);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    capacity.descriptors = Room{static_cast<double>(limit.rlim_cur), "ulimit -n"};
  }
  std::istringstream files(fileText(root + "/proc/sys/fs/file-nr"));  // allocated, 0, most
  double allocated = 0, unused = 0, most = 0;
  if (files >> allocated >> unused >> most) capacity.files = Room{most - allocated, "fs.file-max"};
  const auto namespaces = [&](const char* kind) -> std::optional<Room> {
    const auto number = numberIn(fmt::format("{}/proc/sys/user/max_{}_namespaces", root, kind));
    if (!number) return std::nullopt;
    return Room{*number, fmt::format("user.max_{}_namespaces", kind)};
  };
  capacity.networkNamespaces = namespaces("net");
  capacity.processNamespaces = namespaces("pid");
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof(usable), &usable) == 0) {
    capacity.processors = std::max(1, CPU_COUNT(&usable));
  }
  return capacity;
}

}  // namespace faultline::run
