#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/input_file.h"
#include "base/limits.h"
#include "base/refused_calls.h"
#include "base/unique_fd.h"
#include "base/write_signals.h"

namespace faultline {
namespace {

constexpr mode_t kMode = 0666;  // less what the user's mask takes

Status writeAll(int fd, std::string_view content, const std::string& what) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return Status::fromErrno(errno, what);
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return okStatus();
}

Status fill(int fd, std::string_view content, Sync sync, const std::string& what) {
  RETURN_IF_ERROR(writeAll(fd, content, what));
  // Some file systems report a full disk only here.
  if (sync == Sync::kYes && ::fsync(fd) != 0 && errno != EINVAL) {
    return callRefused(errno, "fsync", what);
  }
  return okStatus();
}

Status finish(UniqueFd fd, std::string_view content, Sync sync, const std::string& what) {
  RETURN_IF_ERROR(fill(fd.get(), content, sync, what));
  if (::close(fd.release()) != 0) return Status::fromErrno(errno, what);
  return okStatus();
}

UniqueFd openStream(const std::string& path) {
  // Opened anew, a file would be written from where that begins, and not behind what is there.
  const int own = descriptorOf(path);
  if (own >= 0) return UniqueFd(::fcntl(own, F_DUPFD_CLOEXEC, 0));
  // A pipe that nobody reads is an error instead of a wait.
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (fd) (void)::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return fd;
}

/// What a symbolic link means, also where that is not there yet.
std::string resolved(std::filesystem::path path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // as the kernel has it
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(path, error)); ++i) {
    path = path.parent_path() / fs::read_symlink(path, error);
  }
  return path.string();
}

/// Where the old file can be written, and another one be put in its place cannot: in a folder that
/// is not ours, with a very long name, or mounted by itself.
bool onlyInPlace(int error) {
  return error == EACCES || error == EPERM || error == EROFS || error == ENAMETOOLONG ||
         error == EBUSY;
}

constexpr int kOthers = 100;  // left behind by a process of the same number, or being written

std::string temporaryName(const std::string& path, int number) {
  return fmt::format("{}.{}-{}", path, ::getpid(), number);
}

/// A new file beside `path`, with the rights of any other one of its user: the kernel knows those,
/// and to ask for them would change them for other threads.
UniqueFd openTemporary(const std::string& path, std::string& name) {
  for (int i = 0; i < kOthers; ++i) {
    name = temporaryName(path, i);
    UniqueFd fd(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
    // Who sweeps knows by the lock that it is being written.
    if (fd) (void)::flock(fd.get(), LOCK_EX | LOCK_NB);
    if (fd || errno != EEXIST) return fd;
  }
  return {};
}

/// A new file in the folder of `path` without a name: nothing of it is left when its writer is
/// killed. Not every file system has such.
UniqueFd openUnnamed(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  return UniqueFd(::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, kMode));
}

/// Gives it a name beside `path`; empty: it cannot have one.
std::string nameUnnamed(int fd, const std::string& path) {
  const std::string open = fmt::format("/proc/self/fd/{}", fd);
  for (int i = 0; i < kOthers; ++i) {
    std::string name = temporaryName(path, i);
    if (::linkat(AT_FDCWD, open.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      return name;
    }
    if (errno != EEXIST) break;
  }
  return "";
}

/// Whether `text` is PROCESS-NUMBER, the end of a temporary name: the process, or 0.
pid_t writerOf(std::string_view text) {
  pid_t process = 0;
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, process);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return 0;
  const auto second = std::from_chars(first.ptr + 1, end, number);
  return second.ec == std::errc() && second.ptr == end && number >= 0 ? process : 0;
}

/// A file of this user that nobody writes.
bool isLeft(const std::string& path, pid_t writer) {
  if (writer <= 0 || ::kill(writer, 0) == 0 || errno != ESRCH) return false;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat about = {};
  return fd && ::fstat(fd.get(), &about) == 0 && S_ISREG(about.st_mode) &&
         about.st_uid == ::geteuid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
}

/// That a file is written only where there is a regular one, or none. A link that somebody puts
/// there later is replaced and not followed.
Status refuseOthers(const std::string& path, const std::string& what) {
  struct stat there = {};
  if (::lstat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode)) return okStatus();
  return errorf(Code::kAlreadyExists, "{}: {} is there and is no regular file; remove it", what,
                S_ISLNK(there.st_mode) ? "a symbolic link" : "something");
}

}  // namespace

bool isStream(const std::string& path) {
  struct stat there = {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) return true;
  return descriptorOf(path) >= 0;
}

pid_t writerOfTemporary(std::string_view name, std::string_view target) {
  if (!name.starts_with(target) || !name.substr(target.size()).starts_with(".")) return 0;
  return writerOf(name.substr(target.size() + 1));
}

int sweepTemporaries(const std::string& path, const std::set<pid_t>& writers) {
  namespace fs = std::filesystem;
  const fs::path target(path);
  const std::string made = target.filename().string();
  int swept = 0;
  std::error_code error;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const pid_t writer = writerOfTemporary(name, made);
    if (!writers.contains(writer)) continue;
    if (isLeft(it->path().string(), writer) && ::unlink(it->path().c_str()) == 0) ++swept;
  }
  return swept;
}

Status writeFileAtomically(const std::string& path, std::string_view content, Sync sync,
                           Links links) {
  const WithoutWriteSignals quiet;
  const std::string what = fmt::format("write {} ({} bytes)", path, content.size());
  const bool follows = links == Links::kFollowed;
  if (!follows) RETURN_IF_ERROR(refuseOthers(path, what));
  if (follows && isStream(path)) {
    UniqueFd fd = openStream(path);
    if (!fd) return Status::fromErrno(errno, what);
    return finish(std::move(fd), content, sync, what);
  }
  const std::string target = follows ? resolved(path) : path;
  std::string temporary;
  Status status;
  UniqueFd fd = openUnnamed(target);
  if (fd) {
    RETURN_IF_ERROR(fill(fd.get(), content, sync, what));
    temporary = nameUnnamed(fd.get(), target);
  }
  const bool named = !temporary.empty();
  if (!named) {
    fd = openTemporary(target, temporary);
    if (!fd && !(follows && onlyInPlace(errno))) return Status::fromErrno(errno, what);
  }
  if (fd) {
    if (!named) status = finish(std::move(fd), content, sync, what);
    if (status.ok() && ::rename(temporary.c_str(), target.c_str()) == 0) return okStatus();
    const int error = errno;
    ::unlink(temporary.c_str());
    if (!status.ok()) return status;
    if (!(follows && onlyInPlace(error))) {
      // EPERM has other reasons too.
      return isRefused("rename") ? callRefused(error, "rename", what)
                                 : Status::fromErrno(error, what + " (rename)");
    }
  }
  fd = UniqueFd(::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode));
  if (!fd) return Status::fromErrno(errno, what);
  return finish(std::move(fd), content, sync, what);
}

Status checkFile(const std::string& path) {
  const std::string what = "write " + path;
  if (isStream(path)) {
    return openStream(path) ? okStatus() : Status::fromErrno(errno, what);
  }
  const std::string target = resolved(path);
  const bool there = ::access(target.c_str(), F_OK) == 0;
  const UniqueFd fd(::open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kMode));
  if (!fd) return Status::fromErrno(errno, what);
  if (!there) (void)::unlink(target.c_str());
  return okStatus();
}

}  // namespace faultline
