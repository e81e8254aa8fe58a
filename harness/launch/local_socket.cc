#include "harness/launch/local_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file_text.h"
#include "base/limits.h"

namespace faultline::launch {
namespace {

constexpr int kConnectAgainMs = 5;
constexpr mode_t kClaimMode = 0600;

Result<sockaddr_un> addressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return errorf(Code::kInvalidArgument, "'{}': the path of a socket has 1 to {} characters", path,
                  sizeof address.sun_path - 1);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

Result<UniqueFd> newSocket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return callRefused(errno, "socket", "make a socket");
  return fd;
}

}  // namespace

Result<LocalPeer> localPeer(int fd) {
  constexpr const char* kAttempt = "ask who is at the other end of a socket";
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    return Status::fromErrno(errno, kAttempt);
  }
  LocalPeer peer{.pid = who.pid, .uid = who.uid, .groups = {}};
  socklen_t bytes = 0;
  ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, nullptr, &bytes);  // ERANGE, with how many there are
  peer.groups.resize(bytes / sizeof(gid_t));
  if (bytes > 0 && ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &bytes) != 0) {
    return Status::fromErrno(errno, kAttempt);
  }
  peer.groups.push_back(who.gid);
  return peer;
}

Result<UniqueFd> listenAt(const std::string& path, mode_t mode) {
  const std::string attempt = "listen at " + path;
  ASSIGN_OR_RETURN(const sockaddr_un address, addressOf(path));
  struct stat there = {};
  if (::lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) {
      return errorf(Code::kAlreadyExists, "{}: there is a file that is no socket", attempt);
    }
    ::unlink(path.c_str());
  }
  ASSIGN_OR_RETURN(UniqueFd fd, newSocket());
  // Made with its mode: by its path, it could be something else by now that gets it.
  const mode_t mask = ::umask(0777 & ~mode);
  const int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int refused = errno;
  ::umask(mask);
  if (bound != 0) return Status::fromErrno(refused, attempt);
  if (::listen(fd.get(), SOMAXCONN) != 0) return Status::fromErrno(errno, attempt);
  return fd;
}

Result<UniqueFd> connectTo(const std::string& path, Duration patience) {
  const std::string attempt = "connect to " + path;
  ASSIGN_OR_RETURN(const sockaddr_un address, addressOf(path));
  const TimePoint deadline = now() + patience;
  while (true) {
    ASSIGN_OR_RETURN(UniqueFd fd, newSocket());
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      ASSIGN_OR_RETURN(const LocalPeer peer, localPeer(fd.get()));
      if (peer.uid == 0 || peer.uid == ::geteuid()) return fd;
      return errorf(Code::kPermissionDenied, "{}: who listens there is user {}, and not root",
                    attempt, peer.uid);
    }
    if (errno == ENOENT || errno == ECONNREFUSED) {
      return errorf(Code::kNotFound, "{}: nobody listens there", attempt);
    }
    if (errno != EAGAIN && errno != EINTR) return Status::fromErrno(errno, attempt);
    if (now() >= deadline) {
      return errorf(Code::kDeadlineExceeded, "{}: too many others wait there", attempt);
    }
    ::poll(nullptr, 0, kConnectAgainMs);
  }
}

Result<UniqueFd> claimFile(const std::string& path) {
  const std::string attempt = "claim " + path;
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kClaimMode));
  if (!fd) return Status::fromErrno(errno, attempt);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Status::fromErrno(errno, attempt);
    std::string who = fileText(path);
    who.erase(std::find(who.begin(), who.end(), '\n'), who.end());
    return errorf(Code::kAlreadyExists, "{}: process {} has it", attempt,
                  who.empty() ? "of another user" : who);
  }
  const std::string who = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), who.data(), who.size(), 0) != static_cast<ssize_t>(who.size())) {
    return Status::fromErrno(errno, attempt);
  }
  return fd;
}

}  // namespace faultline::launch
