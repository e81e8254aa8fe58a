#include "harness/launch/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/limits.h"

namespace faultline::launch {

Result<OutputFile> OutputFile::create(const std::string& path, std::int64_t limit) {
  constexpr mode_t kMode = 0644;
  OutputFile file;
  file.path_ = path;
  file.left_ = limit;
  file.file_.reset(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (!file.file_) return Status::fromErrno(errno, "open " + path);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return callRefused(errno, "pipe2", "make a pipe");
  file.read_end_.reset(ends[0]);
  file.write_end_.reset(ends[1]);
  // Only our end: programs do not expect that writing is refused.
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return Status::fromErrno(errno, "set up a pipe");
  return file;
}

Status OutputFile::pump() {
  std::array<char, 64 << 10> part;
  while (read_end_) {
    const ssize_t got = ::read(read_end_.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return okStatus();
    if (got <= 0) {
      read_end_.reset();
      return okStatus();
    }
    if (Status status = append(part.data(), static_cast<std::size_t>(got)); !status.ok()) {
      read_end_.reset();
      return status;
    }
  }
  return okStatus();
}

Status OutputFile::append(const char* data, std::size_t size) {
  const std::size_t fits = std::min(size, static_cast<std::size_t>(left_));
  cut_ = cut_ || fits < size;
  for (std::size_t done = 0; done < fits;) {
    const ssize_t wrote = ::write(file_.get(), data + done, fits - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Status::fromErrno(errno, "write what a program prints to " + path_);
    done += static_cast<std::size_t>(wrote);
    left_ -= wrote;
  }
  return okStatus();
}

}  // namespace faultline::launch
