#include "base/refused_calls.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

namespace faultline {
namespace {

constexpr int kNoFd = -1;
constexpr long kNoPointer = 0;

struct Probe {
  std::string_view call;
  /// The call with arguments that the kernel refuses, or has nothing to do for. A filter answers
  /// before the kernel looks at them.
  long (*ask)();
  /// glibc does without where the call is unknown.
  bool mayBeUnknown = false;
};

#define FAULTLINE_PROBE(name, ...)                           \
  Probe {                                                    \
#name, [] { return ::syscall(SYS_##name, __VA_ARGS__); } \
  }

constexpr std::array kProbes{
    // Signal handlers cannot be shared without memory.
    Probe{"clone", [] { return ::syscall(SYS_clone, CLONE_SIGHAND, 0L, 0L, 0L, 0L); }},
    Probe{"clone3", [] { return ::syscall(SYS_clone3, kNoPointer, 0L); }, true},
    FAULTLINE_PROBE(epoll_create1, -1),
    FAULTLINE_PROBE(eventfd2, 0, -1),
    FAULTLINE_PROBE(pipe2, kNoPointer, -1),
    FAULTLINE_PROBE(socketpair, -1, -1, -1, kNoPointer),
    FAULTLINE_PROBE(accept4, kNoFd, kNoPointer, kNoPointer, 0),
    FAULTLINE_PROBE(fsync, kNoFd),
    FAULTLINE_PROBE(memfd_create, kNoPointer, 0),
    FAULTLINE_PROBE(pidfd_open, -1, 0),
    FAULTLINE_PROBE(signalfd4, kNoFd, kNoPointer, 0L, 0),
    FAULTLINE_PROBE(setns, kNoFd, 0),
    FAULTLINE_PROBE(unshare, 0),
    Probe{"poll", [] { return static_cast<long>(::poll(nullptr, 0, 0)); }},
#ifdef SYS_rename
    FAULTLINE_PROBE(rename, kNoPointer, kNoPointer),
#endif
};

#undef FAULTLINE_PROBE

constexpr std::array<std::string_view, 12> kOfRuns{
    "clone",   "clone3", "epoll_create1", "eventfd2",   "pipe2",     "socketpair",
    "accept4", "fsync",  "rename",        "pidfd_open", "signalfd4", "poll"};
constexpr std::array<std::string_view, 5> kOfPlugin{"clone3", "epoll_create1", "eventfd2",
                                                    "accept4", "poll"};

}  // namespace

bool isRefused(std::string_view call) {
  const auto* const probe =
      std::ranges::find_if(kProbes, [&](const Probe& one) { return one.call == call; });
  if (probe == kProbes.end() || probe->ask() >= 0) return false;
  return errno == EPERM || errno == EACCES || (errno == ENOSYS && !probe->mayBeUnknown);
}

std::span<const std::string_view> callsOfRuns() { return kOfRuns; }
std::span<const std::string_view> callsOfPlugin() { return kOfPlugin; }

Status checkCalls(std::span<const std::string_view> calls) {
  std::string refused;
  for (const std::string_view call : calls) {
    if (isRefused(call)) refused += fmt::format("{}{}", refused.empty() ? "" : ", ", call);
  }
  if (refused.empty()) return okStatus();
  return errorf(Code::kUnsupported,
                "system calls are refused that there is no way around: {}; a filter (seccomp, of a "
                "container) forbids them, or the kernel is too old: allow them in the container's "
                "profile",
                refused);
}

}  // namespace faultline
