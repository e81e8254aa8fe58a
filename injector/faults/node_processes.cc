#include "injector/faults/node_processes.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "injector/netlink/namespace.h"

namespace faultline::injector {
namespace {

/// Calls `visit` with every entry of the folder that is a number.
void forEachNumber(const std::string& folder, const std::function<void(pid_t)>& visit) {
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> entries(::opendir(folder.c_str()), close);
  while (entries) {
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) return;
    const std::string_view name(entry->d_name);
    pid_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) visit(number);
  }
}

/// The letter of proc(5); 0 when there is no such task.
char stateOf(const std::string& task) {
  std::ifstream file(task + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');  // the name may contain anything
  return name_end == std::string::npos || name_end + 2 >= line.size() ? '\0' : line[name_end + 2];
}

bool wasStartedWith(const std::string& process, std::span<const std::string> variables) {
  std::ifstream environment(process + "/environ", std::ios::binary);
  std::set<std::string> entries;
  for (std::string entry; std::getline(environment, entry, '\0');) entries.insert(entry);
  return std::ranges::all_of(
      variables, [&](const std::string& variable) { return entries.contains(variable); });
}

/// Threads of the kernel run no program. A first namespace, as that of a guest, has a hundred.
bool isKernelThread(const std::string& folder) {
  char first = 0;
  return ::readlink((folder + "/exe").c_str(), &first, sizeof(first)) < 0 && errno == ENOENT;
}

UniqueFd openHandle(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace

Status HeldProcess::signal(int number) const {
  if (::syscall(SYS_pidfd_send_signal, pid_fd_.get(), number, nullptr, 0) == 0) return okStatus();
  return Status::fromErrno(errno, fmt::format("send signal {} to process {}", number, pid_));
}

bool HeldProcess::hasEnded() const {
  pollfd waiting{pid_fd_.get(), POLLIN, 0};
  return ::poll(&waiting, 1, 0) > 0;
}

bool HeldProcess::isStopped() const {
  int tasks = 0;
  int stopped = 0;
  const std::string folder = fmt::format("/proc/{}/task", pid_);
  forEachNumber(folder, [&](pid_t task) {
    ++tasks;
    if (stateOf(fmt::format("{}/{}", folder, task)) == 'T') ++stopped;
  });
  return tasks > 0 && stopped == tasks;
}

Duration HeldProcess::cpuTime() const {
  std::int64_t nanoseconds = 0;
  const std::string folder = fmt::format("/proc/{}/task", pid_);
  forEachNumber(folder, [&](pid_t task) {
    std::ifstream file(fmt::format("{}/{}/schedstat", folder, task));
    std::int64_t ran = 0;
    if (file >> ran) nanoseconds += ran;
  });
  return Duration(nanoseconds);
}

Result<std::vector<HeldProcess>> processesIn(int namespace_fd,
                                             std::span<const std::string> started_with) {
  ASSIGN_OR_RETURN(const std::uint64_t wanted, netlink::namespaceId(namespace_fd));
  std::vector<HeldProcess> found;
  Status trouble;
  forEachNumber("/proc", [&](pid_t pid) {
    struct stat info {};
    const std::string folder = fmt::format("/proc/{}", pid);
    // Other users' processes cannot be looked at, and are not in a namespace of ours.
    if (pid == ::getpid() || ::stat((folder + "/ns/net").c_str(), &info) != 0) return;
    if (static_cast<std::uint64_t>(info.st_ino) != wanted || isKernelThread(folder)) return;
    if (!started_with.empty() && !wasStartedWith(folder, started_with)) return;
    UniqueFd handle = openHandle(pid);
    if (!handle && errno != ESRCH) {
      trouble = callRefused(errno, "pidfd_open", fmt::format("hold process {}", pid));
    }
    if (handle && stateOf(folder) != 'Z') found.emplace_back(pid, std::move(handle));
  });
  if (!trouble.ok()) return trouble;
  return found;
}

Result<std::vector<HeldProcess>> processesOf(const netlink::LinkTarget& target) {
  return processesIn(target.nic.socket->namespaceFd(), target.startedWith);
}

Status requireProcessHandles() {
  if (openHandle(::getpid())) return okStatus();
  const Status refused = callRefused(errno, "pidfd_open", "hold a process");
  return errorf(Code::kUnsupported, "{} (Linux 5.3 has it)", refused.message());
}

}  // namespace faultline::injector
