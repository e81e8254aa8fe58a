#include "injector/verbs/access.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

namespace faultline::injector::verbs {
namespace {

constexpr std::uint64_t kMayLookIntoAll = std::uint64_t{1} << CAP_SYS_PTRACE;

/// Calls `visit` with each key of /proc/PID/status and what follows it.
template <typename Visit>
void forEachFact(const std::string& process, Visit visit) {
  std::ifstream status("/proc/" + process + "/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    visit(key, words);
  }
}

/// The kernel makes root the owner of the files of a process that may not be looked into (proc(5)).
/// Of root's own nothing follows from that.
std::optional<bool> dumpableBy(pid_t pid, uid_t effective) {
  struct stat facts {};
  if (effective == 0 || ::stat(fmt::format("/proc/{}/status", pid).c_str(), &facts) != 0) {
    return std::nullopt;
  }
  return facts.st_uid == effective;
}

}  // namespace

AccessFacts readAccessFacts(pid_t pid) {
  AccessFacts facts;
  facts.caller = ::geteuid();
  forEachFact("self", [&](const std::string& key, std::istream& words) {
    if (key == "CapEff:") words >> std::hex >> facts.callerCapabilities;
  });
  forEachFact(std::to_string(pid), [&](const std::string& key, std::istream& words) {
    if (key == "Uid:") words >> facts.real >> facts.effective >> facts.saved;
    if (key == "CapPrm:") words >> std::hex >> facts.permittedCapabilities;
  });
  facts.dumpable = dumpableBy(pid, facts.effective);
  return facts;
}

std::string whyRefused(pid_t pid, const AccessFacts& facts) {
  constexpr const char* kRemedy = "do it as root with CAP_SYS_PTRACE";
  const bool may_look = (facts.callerCapabilities & kMayLookIntoAll) != 0;
  if (may_look) {
    return fmt::format(
        "process {} may not be looked into though this one has CAP_SYS_PTRACE: the process lives "
        "in another user namespace, the folder of its socket cannot be entered without "
        "CAP_DAC_OVERRIDE, or a security module forbids it",
        pid);
  }
  const std::array users{facts.real, facts.effective, facts.saved};
  const auto own = std::ranges::count(users, facts.caller);
  if (own == 0 && facts.caller == 0) {
    return fmt::format(
        "process {} is of user {}, and root may look into it only with the capability "
        "CAP_SYS_PTRACE, which this one lacks (a container's root?): add it, or be that user",
        pid, facts.effective);
  }
  if (own == 0) {
    return fmt::format("process {} is another user's: faults are for its own user and root", pid);
  }
  if (own < std::ssize(users)) {
    return fmt::format(
        "process {} is not of your user alone, as set-id programs are not (its real user is {}, "
        "the effective one {}, the saved one {}): {}",
        pid, facts.real, facts.effective, facts.saved, kRemedy);
  }
  if (facts.dumpable == false) {
    return fmt::format(
        "process {} is of your own user, but may not be looked into: it is not dumpable, since its "
        "program is set-id or has file capabilities, or it has changed its user or has called "
        "prctl(PR_SET_DUMPABLE, 0): {}",
        pid, kRemedy);
  }
  if ((facts.permittedCapabilities & ~facts.callerCapabilities) != 0) {
    return fmt::format(
        "process {} is of your own user, but has capabilities that this one lacks ({:#x}): give "
        "them to this one as well, or {}",
        pid, facts.permittedCapabilities & ~facts.callerCapabilities, kRemedy);
  }
  return fmt::format(
      "process {} is of your own user, and may not be looked into all the same: it is not dumpable "
      "(PR_SET_DUMPABLE), has other groups, lives in another user namespace, or the folder of its "
      "socket is not to be entered: {}",
      pid, kRemedy);
}

}  // namespace faultline::injector::verbs
