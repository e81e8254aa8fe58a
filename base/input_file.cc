#include "base/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace faultline {
namespace {

const char* nameOfKind(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe, which may never end";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device, which may never end";
  return "no regular file";
}

Status otherKind(mode_t mode, const std::string& doing) {
  return errorf(Code::kInvalidArgument, "{}: it is {}; give a regular file", doing,
                nameOfKind(mode));
}

/// Looked at before it is opened: to open a device can have effects. And looked at afterwards:
/// somebody may have put another one in its place.
Result<UniqueFd> openRegular(const std::string& path, const std::string& doing) {
  struct stat before = {};
  if (::stat(path.c_str(), &before) != 0) return Status::fromErrno(errno, doing);
  if (!S_ISREG(before.st_mode)) return otherKind(before.st_mode, doing);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd) return Status::fromErrno(errno, doing);
  struct stat opened = {};
  if (::fstat(fd.get(), &opened) != 0) return Status::fromErrno(errno, doing);
  if (!S_ISREG(opened.st_mode)) return otherKind(opened.st_mode, doing);
  return fd;
}

/// A copy of one of our descriptors, of which pipes and files are read, and nothing that is
/// endless.
Result<UniqueFd> openOwn(int descriptor, const std::string& doing) {
  UniqueFd fd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!fd) return Status::fromErrno(errno, doing);
  struct stat opened = {};
  if (::fstat(fd.get(), &opened) != 0) return Status::fromErrno(errno, doing);
  const mode_t mode = opened.st_mode;
  const bool terminal = S_ISCHR(mode) && ::isatty(fd.get()) == 1;
  if (S_ISREG(mode) || S_ISFIFO(mode) || S_ISSOCK(mode) || terminal) return fd;
  return errorf(Code::kInvalidArgument, "{}: it is {}; give a regular file or a pipe", doing,
                nameOfKind(mode));
}

Result<std::string> readAll(int fd, const Input& input, bool waits, const std::string& doing) {
  std::string content;
  constexpr std::size_t kStep = 1 << 16;
  while (true) {
    const std::size_t size = content.size();
    // One byte more than allowed is enough to see that it is too much.
    const std::size_t wanted = std::min(kStep, input.mostBytes + 1 - size);
    content.resize(size + wanted);
    const ssize_t got = ::read(fd, content.data() + size, wanted);
    const int error = errno;
    content.resize(size + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got == 0) return content;
    if (got < 0 && error == EAGAIN && waits) {
      pollfd ready{fd, POLLIN, 0};
      (void)::poll(&ready, 1, -1);
    } else if (got < 0 && error == EAGAIN) {
      return errorf(Code::kInvalidArgument,
                    "{}: reading it waits for somebody else; give a regular file that is whole",
                    doing);
    } else if (got < 0 && error != EINTR) {
      return Status::fromErrno(error, doing);
    }
    if (content.size() > input.mostBytes) {
      return errorf(
          Code::kInvalidArgument,
          "{}: there are more than {} bytes, the most that a {} may have; give a shorter one",
          doing, input.mostBytes, input.what);
    }
  }
}

}  // namespace

int descriptorOf(std::string_view path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string_view digits = path.substr(folder.size());
    int number = -1;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size()) return number;
  }
  return -1;
}

Result<UniqueFd> openInput(const std::string& path) { return openRegular(path, "read " + path); }

Result<std::string> readInput(const std::string& path, const Input& input) {
  const std::string doing = input.attempt.empty() ? "read " + path : std::string(input.attempt);
  const int own = path == "-" ? STDIN_FILENO : descriptorOf(path);
  if (input.ownPipes && own >= 0) {
    ASSIGN_OR_RETURN(const UniqueFd fd, openOwn(own, doing));
    return readAll(fd.get(), input, /*waits=*/true, doing);
  }
  ASSIGN_OR_RETURN(const UniqueFd fd, openRegular(path, doing));
  return readAll(fd.get(), input, /*waits=*/false, doing);
}

Result<std::string> readFile(const std::string& path) { return readInput(path, {}); }

}  // namespace faultline
