#include "harness/agent/host_lock.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <thread>

#include "base/printable.h"
#include "base/units.h"

namespace faultline::agent {
namespace {

constexpr Duration kLockPause = 20ms;
// For an agent that is busy; one that hangs says nothing.
constexpr Duration kHolderAnswerBudget = 500ms;
constexpr std::size_t kLongestAnswer = 300;

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

/// What the holder says of itself, on one line; empty when it says nothing soon.
std::string wordsFrom(int socket) {
  std::string words;
  const TimePoint deadline = now() + kHolderAnswerBudget;
  while (words.size() < kLongestAnswer) {
    const double left = toMilliseconds(deadline - now());
    pollfd ready{socket, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left) + 1) <= 0) break;
    std::array<char, kLongestAnswer> bytes;
    const ssize_t size = ::recv(socket, bytes.data(), bytes.size() - words.size(), MSG_DONTWAIT);
    if (size <= 0) break;
    words.append(bytes.data(), static_cast<std::size_t>(size));
  }
  std::ranges::replace(words, '\n', ' ');
  return printable(words);  // somebody else's
}

/// ": run 'a' of alice at login1, since ... (process 4711 there)", or as much as is to be known.
std::string holderOf(const Name& name) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* const address = reinterpret_cast<const sockaddr*>(&name.address);
  if (!socket || ::connect(socket.get(), address, name.size) != 0) return "";
  const std::string words = wordsFrom(socket.get());
  ucred holder{};
  socklen_t size = sizeof holder;
  const bool known =
      ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &holder, &size) == 0 && holder.pid > 0;
  return (words.empty() ? "" : ": " + words) +
         (known ? fmt::format(" (process {} there)", holder.pid) : "");
}

}  // namespace

Result<HostLock> HostLock::hold(const std::string& name, const std::string& holder,
                                Duration budget) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Status::fromErrno(errno, "open a socket for the lock of a host");
  const Name own = nameOf(name);
  const TimePoint deadline = now() + budget;
  while (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own.address), own.size) != 0) {
    if (errno != EADDRINUSE) return Status::fromErrno(errno, "lock the host");
    if (now() >= deadline) {
      return errorf(Code::kAlreadyExists,
                    "another run uses this host{}; wait until it is over, or use other hosts. This "
                    "run's own list may have the host twice, by two names",
                    holderOf(own));
    }
    std::this_thread::sleep_for(kLockPause);
  }
  constexpr int kWaiting = 8;  // who asks who holds it
  if (::listen(socket.get(), kWaiting) != 0) return Status::fromErrno(errno, "lock the host");
  return HostLock(std::move(socket), holder.substr(0, kLongestAnswer));
}

void HostLock::answer() {
  for (;;) {
    const UniqueFd asking(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!asking && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!asking) return;
    // Its buffer is empty and larger than this.
    (void)!::send(asking.get(), holder_.data(), holder_.size(), MSG_NOSIGNAL);
  }
}

}  // namespace faultline::agent
