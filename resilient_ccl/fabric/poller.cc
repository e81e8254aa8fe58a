#include "resilient_ccl/fabric/poller.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <limits>
#include <span>

#include "base/limits.h"
#include "base/system_calls.h"

namespace faultline::fabric {

Status Poller::open() {
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return callRefused(errno, "epoll_create1", "create an epoll object");
  return okStatus();
}

Status Poller::add(int fd, std::uint32_t events, Handler handler) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return Status::fromErrno(errno, "watch a descriptor");
  }
  handlers_[fd] = std::make_shared<Handler>(std::move(handler));
  return okStatus();
}

void Poller::setEvents(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  countSystemCall();
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::remove(int fd) {
  if (process_.here()) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  handlers_.erase(fd);
}

namespace {

/// Before Linux 5.11 there is no epoll_pwait2, and filters of containers that do not know it forbid
/// it: then a wait ends up to a millisecond late.
int waitForEvents(int epoll, std::span<epoll_event> ready, Duration sleep) {
  static std::atomic<bool> coarse{false};
  const int most = static_cast<int>(ready.size());
  if (sleep <= Duration::zero()) return epoll_wait(epoll, ready.data(), most, 0);
  if (!coarse.load(std::memory_order_relaxed)) {
    const timespec pause{.tv_sec = duration_cast<std::chrono::seconds>(sleep).count(),
                         .tv_nsec = (sleep % 1s).count()};
    const int count = epoll_pwait2(epoll, ready.data(), most, &pause, nullptr);
    if (count >= 0 || (errno != ENOSYS && errno != EPERM && errno != EACCES)) return count;
    coarse.store(true, std::memory_order_relaxed);
  }
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(sleep).count();
  const auto longest = static_cast<std::int64_t>(std::numeric_limits<int>::max());
  return epoll_wait(epoll, ready.data(), most,
                    static_cast<int>(std::min<std::int64_t>(milliseconds, longest)));
}

}  // namespace

Result<int> Poller::wait(Duration timeout) {
  std::array<epoll_event, 64> ready;
  countSystemCall();
  const int count = waitForEvents(epoll_.get(), ready, timeout);
  if (count < 0 && errno != EINTR) return Status::fromErrno(errno, "wait for the network");
  for (int i = 0; i < count; ++i) {
    const auto handler = handlers_.find(ready[i].data.fd);
    if (handler == handlers_.end()) continue;
    const std::shared_ptr<Handler> call = handler->second;  // it may remove itself
    (*call)(ready[i].events);
  }
  return std::max(count, 0);
}

}  // namespace faultline::fabric
