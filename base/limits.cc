#include "base/limits.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>
#include <vector>

#include "base/cgroup.h"
#include "base/limit_text.h"
#include "base/refused_calls.h"

namespace faultline {
namespace {

/// The tightest pids.max of the process's cgroups, with what it counts.
std::string pidsOfCgroups(const std::string& root) {
  std::optional<double> tightest;
  std::string text;
  for (const std::filesystem::path& group : ownCgroups("pids", root)) {
    const std::optional<double> most = cgroupNumber(group / "pids.max");
    if (!most || (tightest && *tightest <= *most)) continue;
    tightest = most;
    text = fmt::format("pids.max {:.0f} of {} ({:.0f} in use)", *most, group.string(),
                       cgroupNumber(group / "pids.current").value_or(0));
  }
  return text;
}

}  // namespace

Status cannotStart(int error, std::string_view attempt, const std::string& root) {
  if (error != EAGAIN) return callRefused(error, "clone", attempt);
  std::string limits = fmt::format("ulimit -u is {}", limitText(RLIMIT_NPROC));
  if (const std::string pids = pidsOfCgroups(root); !pids.empty()) limits += ", " + pids;
  for (const char* name : {"threads-max", "pid_max"}) {
    const std::string value = firstWordOf(fmt::format("{}/proc/sys/kernel/{}", root, name));
    if (!value.empty()) limits += fmt::format(", kernel.{} {}", name, value);
  }
  return errorf(Code::kUnavailable,
                "{}: a limit of processes and threads is reached, or there is no memory for it; "
                "the limits here: {}",
                attempt, limits);
}

Status cannotMakeNamespace(int error, std::string_view attempt, std::string_view kinds,
                           const std::string& root) {
  if (isRefused("unshare")) return callRefused(error, "unshare", attempt);
  if (error != ENOSPC) return Status::fromErrno(error, attempt);
  std::string settings;
  std::istringstream words{std::string(kinds)};
  for (std::string kind; words >> kind;) {
    const std::string value =
        firstWordOf(fmt::format("{}/proc/sys/user/max_{}_namespaces", root, kind));
    settings += fmt::format("{}user.max_{}_namespaces (here {})", settings.empty() ? "" : " or ",
                            kind, value.empty() ? "not known" : value);
  }
  return errorf(Code::kUnavailable,
                "{}: a limit of namespaces is reached; raise {} with sysctl, in this user "
                "namespace and those around it",
                attempt, settings);
}

Status statusOf(const std::exception& thrown) {
  const auto* const error = dynamic_cast<const std::system_error*>(&thrown);
  if (error != nullptr && error->code() == std::errc::resource_unavailable_try_again) {
    return cannotStart(EAGAIN, "start a thread");
  }
  // Of the standard library only the thread asks for something that can be forbidden.
  const bool of_files = dynamic_cast<const std::filesystem::filesystem_error*>(&thrown) != nullptr;
  if (error != nullptr && !of_files &&
      (error->code() == std::errc::operation_not_permitted ||
       error->code() == std::errc::permission_denied)) {
    return callRefused(error->code().value(), "clone3", "start a thread");
  }
  return Status(Code::kInternal, thrown.what());
}

Status callRefused(int error, std::string_view call, std::string_view attempt) {
  if (error != EPERM && error != EACCES && error != ENOSYS) {
    return Status::fromErrno(error, fmt::format("{} ({})", attempt, call));
  }
  const Status plain =
      Status::fromErrno(error, fmt::format("{}: the system call {} is refused", attempt, call));
  return Status(plain.code(), plain.message() +
                                  "; a filter (seccomp, of a container) forbids it, or the kernel "
                                  "is too old for it");
}

}  // namespace faultline
