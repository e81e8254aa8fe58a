#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "base/status.h"

namespace faultline {

/// Behind the text of an error: the limit that was reached, with its value, where `error` alone
/// tells it: descriptors of the process (EMFILE) and of the machine (ENFILE), the size of files
/// (EFBIG). Otherwise empty.
std::string limitBehind(int error);

/// A process or a thread cannot be started. EAGAIN stands for any of several limits, and for a
/// stack without memory: all limits that are set are named with what is used of them. `root`:
/// before /proc and /sys, for tests.
Status cannotStart(int error, std::string_view attempt, const std::string& root = "");

/// A namespace cannot be made. `kinds`: "net", "pid mnt", ... as in user.max_net_namespaces.
Status cannotMakeNamespace(int error, std::string_view attempt, std::string_view kinds,
                           const std::string& root = "");

/// What a library has thrown. A std::thread that cannot be made throws EAGAIN: cannotStart; EPERM
/// and EACCES: callRefused.
Status statusOf(const std::exception& thrown);

/// A system call was refused that takes no privilege. EPERM, EACCES and ENOSYS then come from a
/// filter (seccomp) or an old kernel, and the call is named.
Status callRefused(int error, std::string_view call, std::string_view attempt);

}  // namespace faultline
