#include "injector/safety/policy_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/input_file.h"

namespace faultline::safety {

std::string whyUntrusted(uid_t owner, mode_t mode, bool holds) {
  if (owner != 0) return fmt::format("it belongs to user {}, and not to root", owner);
  const bool others = (mode & (S_IWGRP | S_IWOTH)) != 0;
  if (!others || (holds && (mode & S_ISVTX) != 0)) return "";
  return "others than root may write it";
}

Result<std::string> trustedPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real == nullptr) return Status::fromErrno(errno, path);
  bool holds = false;
  std::filesystem::path place(real.get());
  while (true) {
    struct stat about = {};
    if (::lstat(place.c_str(), &about) != 0) return Status::fromErrno(errno, place.string());
    const std::string why = whyUntrusted(about.st_uid, about.st_mode, holds);
    if (!why.empty()) {
      return errorf(Code::kPermissionDenied,
                    "{}: {}: {}; make it root's ('chown root:root {}', 'chmod go-w {}')", path,
                    place.string(), why, place.string(), place.string());
    }
    if (place == place.root_path()) return std::string(real.get());
    holds = true;
    place = place.parent_path();
  }
}

Result<Policy> readPolicy(const std::string& path, std::span<const std::string_view> knownKinds) {
  ASSIGN_OR_RETURN(const std::string real, trustedPath(path));
  ASSIGN_OR_RETURN(const std::string text,
                   readInput(real, {.what = "policy", .mostBytes = kMostPolicyBytes}));
  ASSIGN_OR_RETURN(Policy policy, parsePolicy(text, path, knownKinds));
  for (const auto* command : {&policy.before, &policy.after}) {
    if (command->empty()) continue;
    // kNotFound would mean that there is no policy.
    const Status trusted = trustedPath(command->front()).status();
    if (!trusted.ok()) return errorf(Code::kPermissionDenied, "{}: {}", path, trusted.message());
  }
  return policy;
}

}  // namespace faultline::safety
