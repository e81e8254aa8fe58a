#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/netlink/message.h"

struct nl_sock;

namespace faultline::netlink {

/// A netlink socket of one network namespace. Everything sent through it acts in that
/// namespace, wherever the calling thread is. Not thread-safe.
class Socket {
 public:
  /// Opens a socket inside the namespace (the calling thread goes there and comes back) and keeps
  /// a descriptor of its own on it. `protocol` is NETLINK_...: routes and links, or sockets.
  /// kUnsupported when the kernel does not have that one. Needs no privilege in the thread's own
  /// namespace, and CAP_SYS_ADMIN in any other.
  static Result<Socket> open(int namespace_fd, int protocol = NETLINK_ROUTE);

  /// The namespace in which the requests act; lives as long as this socket.
  int namespaceFd() const { return namespace_.get(); }

  /// Sends the request and waits for the kernel's answer. `attempt` says in errors what was tried;
  /// the kernel's own explanation is appended when it gives one.
  Status request(Message message, std::string_view attempt);

  /// As request(), for questions: `visit` is called for each message of the answer. With `dump`
  /// the question is about all objects. A dump that was torn by a change is asked again, with
  /// `restart` called before, if given.
  using Visit = std::function<void(const nlmsghdr*)>;
  Status ask(Message& message, std::string_view attempt, const Visit& visit);
  Status dump(Message& message, std::string_view attempt, const Visit& visit,
              const std::function<void()>& restart = {});

 private:
  struct Free {
    void operator()(nl_sock* socket) const;
  };
  enum class Answer { kComplete, kTorn };

  Socket(std::unique_ptr<nl_sock, Free> socket, UniqueFd namespace_fd);
  Result<Answer> exchange(Message& message, int flags, std::string_view attempt,
                          const Visit& visit);

  std::unique_ptr<nl_sock, Free> socket_;
  UniqueFd namespace_;
  std::vector<char> buffer_;
};

}  // namespace faultline::netlink
