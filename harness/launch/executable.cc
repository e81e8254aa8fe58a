#include "harness/launch/executable.h"

#include <filesystem>

namespace faultline::launch {
namespace {

namespace fs = std::filesystem;

}  // namespace

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
