#include "resilient_ccl/fabric/acceptor.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace faultline::fabric {
namespace {

// Connections taken before others get their turn.
constexpr int kMostConnectionsPerTurn = 16;

}  // namespace

Acceptor::Acceptor(Poller& poller, auth::Authenticator& authenticator, Duration timeout,
                   Calls calls)
    : poller_(poller), authenticator_(authenticator), timeout_(timeout), calls_(std::move(calls)) {}

Status Acceptor::listen(UniqueFd listener) {
  const int fd = listener.get();
  RETURN_IF_ERROR(poller_.add(fd, EPOLLIN, [this, fd](auto) { take(fd); }));
  listeners_.push_back(std::move(listener));
  if (!watched_) poller_.setEvents(fd, 0);
  return okStatus();
}

void Acceptor::close(int listener) {
  poller_.remove(listener);
  std::erase_if(listeners_, [&](const UniqueFd& one) { return one.get() == listener; });
}

void Acceptor::take(int listener) {
  for (int i = 0; i < kMostConnectionsPerTurn; ++i) {
    UniqueFd socket(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      const int error = errno;
      // Watched, the listeners would keep the poller awake.
      if (rest_.begin(error, now(), "a process that connects")) watch(false);
      return;
    }
    if (strangers_.size() >= kMostStrangers) {
      ++rejected_;
      sendAway(strangers_.begin());
    }
    if (!calls_.configure(socket.get()).ok()) continue;
    const int fd = socket.get();
    const auto stranger = strangers_.insert(
        strangers_.end(), Handshake::accepted(std::move(socket), now() + timeout_));
    const Status added = poller_.add(fd, EPOLLIN, [this, stranger](auto) { advance(stranger); });
    if (added.ok()) {
      advance(stranger);  // sends the challenge
    } else {
      strangers_.erase(stranger);
    }
  }
}

void Acceptor::advance(std::list<Handshake>::iterator stranger) {
  const Result<bool> done = stranger->advance(authenticator_);
  if (done.ok() && !*done) return;
  poller_.remove(stranger->fd());
  if (done.status().code() == Code::kInvalidArgument) ++rejected_;
  const Hello hello = stranger->hello();
  if (done.ok() && calls_.wanted(hello)) {
    Result<UniqueFd> socket = stranger->accept(authenticator_);
    if (socket.ok()) calls_.accepted(hello, std::move(*socket));
  }
  strangers_.erase(stranger);
}

void Acceptor::sendAway(std::list<Handshake>::iterator stranger) {
  poller_.remove(stranger->fd());
  strangers_.erase(stranger);
}

void Acceptor::watch(bool watched) {
  watched_ = watched;
  for (const UniqueFd& listener : listeners_) {
    poller_.setEvents(listener.get(), watched ? static_cast<std::uint32_t>(EPOLLIN) : 0);
  }
}

void Acceptor::expire(TimePoint time) {
  if (!watched_ && rest_.over(time)) watch(true);
  for (auto next = strangers_.begin(); next != strangers_.end();) {
    const auto stranger = next++;
    if (time < stranger->deadline()) continue;
    // A hello comes whole. Who said nothing may be a peer whose network has failed.
    if (stranger->halfSaid()) ++rejected_;
    sendAway(stranger);
  }
}

}  // namespace faultline::fabric
