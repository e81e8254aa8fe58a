#include "injector/netlink/namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/limits.h"
#include "base/refused_calls.h"

namespace faultline::netlink {
namespace {

// The thread's own entry, not /proc/self: that is the main thread's.
constexpr const char* kOwnNamespace = "/proc/thread-self/ns/net";

}  // namespace

Result<UniqueFd> currentNamespace() {
  UniqueFd fd(::open(kOwnNamespace, O_RDONLY | O_CLOEXEC));
  if (!fd) return Status::fromErrno(errno, "open the own network namespace");
  return fd;
}

Result<UniqueFd> newNamespace() {
  ASSIGN_OR_RETURN(UniqueFd home, currentNamespace());
  if (::unshare(CLONE_NEWNET) != 0) {
    return cannotMakeNamespace(errno, "make a network namespace", "net");
  }
  Result<UniqueFd> made = currentNamespace();
  if (::setns(home.get(), CLONE_NEWNET) != 0) {
    return Status::fromErrno(errno, "return to the own network namespace");
  }
  return made;
}

Result<ScopedNamespace> ScopedNamespace::enter(int namespace_fd) {
  ASSIGN_OR_RETURN(UniqueFd home, currentNamespace());
  // Even into the own one only the privileged may go.
  ASSIGN_OR_RETURN(const bool here, isSameNamespace(home.get(), namespace_fd));
  if (here) return ScopedNamespace(UniqueFd());
  if (::setns(namespace_fd, CLONE_NEWNET) != 0) {
    const int error = errno;
    constexpr const char* kAttempt = "enter a network namespace";
    return isRefused("setns") ? callRefused(error, "setns", kAttempt)
                              : Status::fromErrno(error, kAttempt);
  }
  return ScopedNamespace(std::move(home));
}

ScopedNamespace::~ScopedNamespace() {
  if (home_.valid() && ::setns(home_.get(), CLONE_NEWNET) != 0) {
    std::perror("faultline: cannot return to the own network namespace");
    std::abort();
  }
}

Result<bool> isSameNamespace(int one_fd, int other_fd) {
  struct stat one {};
  struct stat other {};
  if (::fstat(one_fd, &one) != 0 || ::fstat(other_fd, &other) != 0) {
    return Status::fromErrno(errno, "identify a namespace");
  }
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

Result<std::uint64_t> namespaceId(int namespace_fd) {
  struct stat info {};
  if (::fstat(namespace_fd, &info) != 0) return Status::fromErrno(errno, "identify a namespace");
  return static_cast<std::uint64_t>(info.st_ino);
}

}  // namespace faultline::netlink
