#include "harness/launch/privileges.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/refused_calls.h"
#include "base/unique_fd.h"

namespace faultline::launch {
namespace {

constexpr std::array<std::string_view, 2> kCallsOfNamespaces{"setns", "unshare"};

bool haveCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  const auto have = [&](unsigned capability) {
    return (data[capability / 32].effective & (1U << (capability % 32))) != 0;
  };
  return have(CAP_SYS_ADMIN) && have(CAP_NET_ADMIN) && have(CAP_NET_RAW);
}

/// Root of a user namespace that was made without a network of its own (`unshare -U -r`, a rootless
/// container) has no rights over the one that it is in: it can leave it, and not come back.
bool ownsNetwork() {
  const UniqueFd own(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  return own && ::setns(own.get(), CLONE_NEWNET) == 0;
}

bool settingIs(const char* path, long expected) {
  std::ifstream file(path);
  long value = 0;
  return (file >> value) && value == expected;
}

/// 0, or the errno.
int writeFile(const char* path, const std::string& text) {
  const UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  if (!file) return errno;
  return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0
                                                                                            : errno;
}

Status refusal(int error) { return explainUserNamespaceRefusal(error, readUserNamespaceFacts()); }

}  // namespace

UserNamespaceFacts readUserNamespaceFacts() {
  return {
      .apparmor_restricts = settingIs("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1),
      .unprivileged_disabled = settingIs("/proc/sys/kernel/unprivileged_userns_clone", 0),
      .limit_is_zero = settingIs("/proc/sys/user/max_user_namespaces", 0)};
}

Status explainUserNamespaceRefusal(int error, const UserNamespaceFacts& facts) {
  constexpr const char* kAttempt = "enter a user namespace (needed because we are not root)";
  const auto denied = [&](const char* why) {
    return errorf(Code::kPermissionDenied, "{}: {}", kAttempt, why);
  };
  // A limit of zero answers "no space left", whatever else forbids it as well.
  if (error == ENOSPC || error == EUSERS || facts.limit_is_zero) {
    return denied(
        "the number of user or network namespaces is exhausted or limited to none; run as root, or "
        "raise `sysctl user.max_user_namespaces` or `user.max_net_namespaces`, whichever it is");
  }
  if (facts.unprivileged_disabled) {
    return denied(
        "this kernel gives user namespaces to root only; run as root, or as root "
        "`sysctl kernel.unprivileged_userns_clone=1`");
  }
  if (facts.apparmor_restricts && (error == EPERM || error == EACCES)) {
    return denied(
        "AppArmor forbids it to unprivileged programs (default of Ubuntu 24.04); run as root, or "
        "as root `sysctl kernel.apparmor_restrict_unprivileged_userns=0`");
  }
  if (error == EINVAL) {
    return errorf(Code::kUnsupported,
                  "{}: the kernel refuses; it has no user namespaces, or the process had threads "
                  "already. Run as root",
                  kAttempt);
  }
  if (error == EPERM || error == EACCES) {
    return denied(
        "forbidden here (a container or a security policy); run as root, or allow "
        "unshare(CLONE_NEWUSER) in the container's profile");
  }
  return Status::fromErrno(error, kAttempt);
}

Status enterUserNamespace() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  // The network namespace comes along because ours belongs to the outer user namespace: whoever
  // leaves it, to make another one, may not come back.
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return refusal(errno);
  // Without this the kernel lets nobody but the privileged map groups (user_namespaces(7)).
  if (const int error = writeFile("/proc/self/setgroups", "deny"); error != 0 && error != ENOENT) {
    return refusal(error);
  }
  if (const int error = writeFile("/proc/self/uid_map", fmt::format("0 {} 1", user)); error != 0) {
    return refusal(error);
  }
  if (const int error = writeFile("/proc/self/gid_map", fmt::format("0 {} 1", group)); error != 0) {
    return refusal(error);
  }
  return okStatus();
}

bool wouldLeaveNetwork() { return !haveCapabilities() || !ownsNetwork(); }

Result<Privileges> enterPrivileges() {
  RETURN_IF_ERROR(checkCalls(callsOfRuns()));
  RETURN_IF_ERROR(checkCalls(kCallsOfNamespaces));
  if (!haveCapabilities()) {
    RETURN_IF_ERROR(enterUserNamespace());
    return Privileges::kUserNamespace;
  }
  if (ownsNetwork()) return Privileges::kRoot;
  if (::unshare(CLONE_NEWNET) != 0) {
    return cannotMakeNamespace(errno, "make a network namespace for this user namespace", "net");
  }
  return Privileges::kUserNamespace;
}

}  // namespace faultline::launch
