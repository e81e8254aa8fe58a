#include "base/claimed_folder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/clock.h"

namespace faultline {
namespace {

/// A process that was killed is gone after so long, and its lock with it.
constexpr Duration kPatience = 2s;
constexpr int kPauseMilliseconds = 5;

}  // namespace

std::string withoutSlash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

Result<UniqueFd> openFolder(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd) return fd;
  const int error = errno;
  struct stat there = {};
  if (::lstat(path.c_str(), &there) == 0 && S_ISLNK(there.st_mode)) {
    return errorf(Code::kInvalidArgument,
                  "{} is a symbolic link, which is not followed: name the folder itself with --out",
                  path);
  }
  return Status::fromErrno(error, "open the output directory " + path);
}

bool lockFolder(int folder) {
  const TimePoint deadline = now() + kPatience;
  while (::flock(folder, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return true;
    if (now() >= deadline) return false;
    ::poll(nullptr, 0, kPauseMilliseconds);
  }
  return true;
}

std::string beginningOf(int folder, const char* name) {
  const UniqueFd file(
      ::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : 0;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::string_view kindOf(mode_t mode) {
  return S_ISLNK(mode) ? "a symbolic link" : S_ISDIR(mode) ? "a folder" : "no regular file";
}

Result<ClaimedFiles> ClaimedFiles::claim(const std::string& directory,
                                         const std::vector<std::string>& names, const Mark& mark,
                                         Earlier earlier) {
  const std::string path = withoutSlash(directory);
  std::error_code error;
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) {
    std::filesystem::create_directories(path, error);
    if (error) return Status::fromErrno(error.value(), "create the directory " + path);
  }
  ASSIGN_OR_RETURN(UniqueFd folder, openFolder(path));
  if (!lockFolder(folder.get())) {
    return errorf(Code::kAlreadyExists,
                  "another faultline is writing into {}: wait for its end, or choose another "
                  "directory",
                  path);
  }
  ASSIGN_OR_RETURN(MadeEntries record, MadeEntries::read(folder.get(), path));
  const bool marked =
      beginningOf(folder.get(), mark.name.c_str()).find(mark.text) != std::string::npos;
  std::set<std::string> older;
  if (marked && !record.mayReplace(mark.name)) older.insert(mark.name);
  for (const std::string& name : names) {
    struct stat there = {};
    if (::fstatat(folder.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(there.st_mode)) {
      return errorf(Code::kAlreadyExists,
                    "{}/{} is {}, which faultline neither follows nor removes: choose another "
                    "directory",
                    path, name, kindOf(there.st_mode));
    }
    if (record.mayReplace(name)) continue;
    if (!marked || (record.there() && !mark.besideRecord)) {
      return errorf(Code::kAlreadyExists,
                    "{}/{} was not made by faultline, which would overwrite it: choose another "
                    "directory",
                    path, name);
    }
    if (earlier == Earlier::kRefused) {
      return errorf(Code::kAlreadyExists,
                    "{}/{} is of an earlier version, without a record of what it made: choose "
                    "another directory, or have it replaced with --force",
                    path, name);
    }
    older.insert(name);
  }
  RETURN_IF_ERROR(record.begin(older));
  record.sweepTemporaries();
  for (const std::string& name : names) RETURN_IF_ERROR(record.add(name));
  return ClaimedFiles(std::move(folder), std::move(record));
}

}  // namespace faultline
