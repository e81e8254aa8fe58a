#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

/// Where the shim of a process listens. One Unix socket per process, in a folder that only its user
/// can enter.
namespace faultline::injector::verbs {

/// The folder, when it is not to be the default; read by the shim from its own environment and by
/// the controller from that of the process.
inline constexpr const char* kFolderVariable = "FAULTLINE_VERBS_DIR";
/// The library that the shim stands in front of; default kRealLibrary.
inline constexpr const char* kLibraryVariable = "FAULTLINE_VERBS_LIB";
inline constexpr const char* kRealLibrary = "libibverbs.so.1";

inline std::string defaultFolder(uid_t user) {
  return "/tmp/faultline-verbs-" + std::to_string(user);
}

/// Which PID namespace a process ("self", or its number) lives in; 0 when that cannot be read.
inline std::uint64_t pidNamespaceOf(const std::string& process) {
  struct stat facts {};
  return ::stat(("/proc/" + process + "/ns/pid").c_str(), &facts) == 0 ? facts.st_ino : 0;
}

/// `pid` as the process itself sees it: containers may share the folder, and each has a process 2,
/// so that its namespace belongs to its name.
inline std::string socketPath(const std::string& folder, pid_t pid, std::uint64_t pid_namespace) {
  return folder + "/" + std::to_string(pid) + "-" + std::to_string(pid_namespace) + ".sock";
}

}  // namespace faultline::injector::verbs
