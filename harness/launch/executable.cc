#include "harness/launch/executable.h"

#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <vector>

namespace faultline::launch {
namespace {

namespace fs = std::filesystem;

bool isProgram(const std::string& file) {
  std::error_code ignored;
  return ::access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file, ignored);
}

}  // namespace

Result<std::string> findExecutable(const std::string& name, const std::string& workingDirectory,
                                   const std::string& path) {
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(fs::absolute(fs::path(workingDirectory) / name).string());
  } else {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      candidates.push_back(fs::absolute(fs::path(workingDirectory) / folder / name).string());
    }
  }
  std::string forbidden;
  for (const std::string& candidate : candidates) {
    if (isProgram(candidate)) return candidate;
    std::error_code ignored;
    if (forbidden.empty() && fs::exists(candidate, ignored)) forbidden = candidate;
  }
  if (!forbidden.empty()) {
    return errorf(Code::kPermissionDenied, "{} is there, but it is no program that can be executed",
                  forbidden);
  }
  return errorf(Code::kNotFound, "there is no program '{}'{}", name,
                name.find('/') != std::string::npos ? "" : " in PATH, which is " + path);
}

std::string findOwnLibrary(const std::string& file, const std::string& folder) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? "" : findOwnLibrary(file, folder, program.parent_path().string());
}

std::string findOwnLibrary(const std::string& file, const std::string& folder,
                           const std::string& programs) {
  for (const fs::path& place : {fs::path(folder), fs::path("../lib")}) {
    std::error_code ignored;
    const fs::path library = fs::canonical(programs / place / file, ignored);
    if (!ignored) return library.string();
  }
  return "";
}

}  // namespace faultline::launch
