#include "base/executable.h"

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

namespace faultline {
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

Result<std::vector<std::string>> splitCommand(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;  // of a word, which may be empty: ''
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool escapes = c == '\\' && quote != '\'';
    if (escapes && i + 1 == line.size()) {
      return errorf(Code::kInvalidArgument, "'{}' ends with a backslash", line);
    }
    if (escapes) {
      word += line[++i];
      inside = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (inside) words.push_back(std::exchange(word, {}));
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (quote != 0) return errorf(Code::kInvalidArgument, "'{}' has an open {}", line, quote);
  if (inside) words.push_back(std::move(word));
  if (words.empty()) return errorf(Code::kInvalidArgument, "there is no command in '{}'", line);
  return words;
}

}  // namespace faultline
