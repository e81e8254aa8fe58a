#include "resilient_ccl/transport/shm/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace faultline::transport::shm {
namespace {

Result<UniqueFd> openLocalStream() {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return Status::fromErrno(errno, "create a local socket");
  return fd;
}

/// One byte with room for one descriptor.
struct DescriptorMessage {
  DescriptorMessage() {
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  char byte = 0;
  iovec piece{&byte, sizeof(byte)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
};

}  // namespace

Result<UniqueFd> openLocalListener() {
  ASSIGN_OR_RETURN(UniqueFd fd, openLocalStream());
  const sockaddr_un anyName{.sun_family = AF_UNIX, .sun_path = {}};
  // Without a path the kernel chooses a name.
  constexpr socklen_t kNoPath = sizeof(anyName.sun_family);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&anyName), kNoPath) != 0) {
    return Status::fromErrno(errno, "name a local socket");
  }
  constexpr int kBacklog = 1024;
  if (listen(fd.get(), kBacklog) != 0) return Status::fromErrno(errno, "listen on a local socket");
  return fd;
}

Result<std::string> localName(int listener) {
  sockaddr_un name{};
  socklen_t size = sizeof(name);
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return Status::fromErrno(errno, "read the name of a local socket");
  }
  return std::string(name.sun_path, size - offsetof(sockaddr_un, sun_path));
}

Result<UniqueFd> connectLocally(const std::string& name) {
  ASSIGN_OR_RETURN(UniqueFd fd, openLocalStream());
  sockaddr_un to{.sun_family = AF_UNIX, .sun_path = {}};
  const std::size_t length = std::min(name.size(), sizeof(to.sun_path));
  std::memcpy(to.sun_path, name.data(), length);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), size) != 0) {
    return Status::fromErrno(errno, "connect to a process of this node");
  }
  return fd;
}

Status sendDescriptor(int connection, int descriptor) {
  DescriptorMessage with;
  cmsghdr* const header = CMSG_FIRSTHDR(&with.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(descriptor));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(descriptor));
  if (sendmsg(connection, &with.message, MSG_NOSIGNAL) == 1) return okStatus();
  return Status::fromErrno(errno, "share memory with a process of this node");
}

Result<UniqueFd> receiveDescriptor(int connection) {
  DescriptorMessage with;
  const ssize_t got = recvmsg(connection, &with.message, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return UniqueFd();
  if (got < 0) return Status::fromErrno(errno, "receive shared memory");
  if (got == 0) return errorf(Code::kUnavailable, "the other end closed the rail");
  const cmsghdr* const header = CMSG_FIRSTHDR(&with.message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return errorf(Code::kInvalidArgument, "the peer shares no memory");
  }
  int descriptor;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof(descriptor));
  return UniqueFd(descriptor);
}

}  // namespace faultline::transport::shm
