#include "harness/agent/host_lock.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <thread>

namespace faultline::agent {
namespace {

constexpr Duration kLockPause = 20ms;

struct Name {
  sockaddr_un address{};
  socklen_t size = 0;
};

/// In the abstract namespace (unix(7)): no file, and gone with its last descriptor.
Name nameOf(const std::string& name) {
  Name made;
  made.address.sun_family = AF_UNIX;
  const std::string text = "faultline/" + name;
  const std::size_t length = std::min(text.size(), sizeof made.address.sun_path - 1);
  std::copy_n(text.data(), length, made.address.sun_path + 1);
  made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return made;
}

/// " (process 4711 there)", or "" where that is not to be seen.
std::string holderOf(const Name& name) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* const address = reinterpret_cast<const sockaddr*>(&name.address);
  ucred holder{};
  socklen_t size = sizeof holder;
  const bool known = socket && ::connect(socket.get(), address, name.size) == 0 &&
                     ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &holder, &size) == 0;
  return known && holder.pid > 0 ? fmt::format(" (process {} there)", holder.pid) : "";
}

}  // namespace

Result<UniqueFd> holdHost(const std::string& name, Duration budget) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Status::fromErrno(errno, "open a socket for the lock of a host");
  const Name own = nameOf(name);
  const TimePoint deadline = now() + budget;
  while (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own.address), own.size) != 0) {
    if (errno != EADDRINUSE) return Status::fromErrno(errno, "lock the host");
    if (now() >= deadline) {
      return errorf(Code::kAlreadyExists,
                    "another run uses this host{}, or this run by another name: wait until it is "
                    "over, or use others",
                    holderOf(own));
    }
    std::this_thread::sleep_for(kLockPause);
  }
  constexpr int kWaiting = 8;  // who asks who holds it
  if (::listen(socket.get(), kWaiting) != 0) return Status::fromErrno(errno, "lock the host");
  return socket;
}

}  // namespace faultline::agent
