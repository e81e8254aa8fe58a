#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

/// Why the system does not let one process look into another one (/proc/PID/root, environ, maps:
/// ptrace(2), "Ptrace access mode checking"). Being of the same user is not enough for it.
namespace faultline::injector::verbs {

/// What that depends on, of both sides.
struct AccessFacts {
  uid_t caller = 0;                      ///< effective
  std::uint64_t callerCapabilities = 0;  ///< effective
  uid_t real = 0;                        ///< of the process that is looked at, as its others
  uid_t effective = 0;
  uid_t saved = 0;
  std::uint64_t permittedCapabilities = 0;
  /// Whether it may be looked into at all (prctl(2), PR_SET_DUMPABLE); nothing: that is not known.
  std::optional<bool> dumpable{};
};

/// Of this process and that one, as far as /proc tells.
AccessFacts readAccessFacts(pid_t pid);

/// The reason that fits, and what to do, like "process 7 is another user's: ...". Pure.
std::string whyRefused(pid_t pid, const AccessFacts& facts);

}  // namespace faultline::injector::verbs
