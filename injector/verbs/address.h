#pragma once

#include <sys/types.h>

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

/// `pid` as the process itself sees it.
inline std::string socketPath(const std::string& folder, pid_t pid) {
  return folder + "/" + std::to_string(pid) + ".sock";
}

}  // namespace faultline::injector::verbs
