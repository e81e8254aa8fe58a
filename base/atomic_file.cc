#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/unique_fd.h"

namespace faultline {
namespace {

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

Status writeAndSync(UniqueFd fd, std::string_view content, const std::string& what) {
  RETURN_IF_ERROR(writeAll(fd.get(), content, what));
  // Some file systems report a full disk only here.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return Status::fromErrno(errno, what);
  if (::close(fd.release()) != 0) return Status::fromErrno(errno, what);
  return okStatus();
}

/// A new file beside `path`, with the rights of any other one of its user: the kernel knows those,
/// and to ask for them would change them for other threads.
UniqueFd openTemporary(const std::string& path, std::string& name) {
  constexpr int kOthers = 100;  // left behind by a process of the same number, or being written
  for (int i = 0; i < kOthers; ++i) {
    name = fmt::format("{}.{}-{}", path, ::getpid(), i);
    UniqueFd fd(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd || errno != EEXIST) return fd;
  }
  return {};
}

}  // namespace

Status writeFileAtomically(const std::string& path, std::string_view content) {
  const std::string what = fmt::format("write {} ({} bytes)", path, content.size());
  struct stat there = {};
  if (::lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    UniqueFd as_it_is(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (!as_it_is) return Status::fromErrno(errno, what);
    return writeAndSync(std::move(as_it_is), content, what);
  }
  std::string temporary;
  UniqueFd fd = openTemporary(path, temporary);
  if (!fd) return Status::fromErrno(errno, what);

  Status status = writeAndSync(std::move(fd), content, what);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = Status::fromErrno(errno, what);
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

Result<std::string> readFile(const std::string& path) {
  const std::string what = "read " + path;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Status::fromErrno(errno, what);
  std::string content;
  constexpr std::size_t kStep = 1 << 16;
  while (true) {
    const std::size_t size = content.size();
    content.resize(size + kStep);
    const ssize_t got = ::read(fd.get(), content.data() + size, kStep);
    if (got < 0 && errno != EINTR) return Status::fromErrno(errno, what);
    content.resize(size + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got == 0) return content;
  }
}

}  // namespace faultline
