#include "resilient_ccl/transport/tcp/io_thread.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>

#include "base/limits.h"
#include "base/system_calls.h"
#include "base/thread.h"

namespace faultline::transport::tcp {
namespace {

constexpr void* kBell = nullptr;  // in the place of a rail

epoll_event eventOf(void* who, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = who;
  return event;
}

}  // namespace

Result<std::unique_ptr<IoThread>> IoThread::start() {
  std::unique_ptr<IoThread> thread(new IoThread);
  RETURN_IF_ERROR(thread->open());
  return thread;
}

Status IoThread::open() {
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return callRefused(errno, "epoll_create1", "create an epoll object");
  RETURN_IF_ERROR(bell_.open());
  epoll_event event = eventOf(kBell, EPOLLIN);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.fd(), &event) != 0) {
    return Status::fromErrno(errno, "watch an event descriptor");
  }
  ASSIGN_OR_RETURN(thread_, startThread("faultline-io", [this] { run(); }));
  return okStatus();
}

IoThread::~IoThread() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  bell_.ring();
  thread_.join();
}

void IoThread::add(std::shared_ptr<ThreadedRail> rail) {
  {
    const std::lock_guard lock(mutex_);
    newRails_.push_back(std::move(rail));
  }
  haveNew_.store(true, std::memory_order_release);
}

Status IoThread::watch(ThreadedRail& rail, std::uint32_t events) {
  epoll_event event = eventOf(&rail, events);
  countSystemCall();
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, rail.fd(), &event) != 0) {
    return Status::fromErrno(errno, "watch a rail");
  }
  return okStatus();
}

void IoThread::watchFor(ThreadedRail& rail, std::uint32_t events) {
  epoll_event event = eventOf(&rail, events);
  countSystemCall();
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, rail.fd(), &event);
}

void IoThread::unwatch(int socket) {
  if (process_.here()) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
}

void IoThread::adopt() {
  if (!haveNew_.exchange(false, std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  rails_.insert(rails_.end(), newRails_.begin(), newRails_.end());
  newRails_.clear();
}

bool IoThread::serveAll() {
  adopt();
  bool busy = false;
  std::erase_if(rails_, [&](const std::shared_ptr<ThreadedRail>& rail) {
    const ThreadedRail::Served served = rail->serve(*this, /*events=*/0);
    if (served == ThreadedRail::Served::kBusy) busy = true;
    return served == ThreadedRail::Served::kClosed;
  });
  return busy;
}

void IoThread::run() {
  std::array<epoll_event, 64> ready;
  while (!stopping_.load(std::memory_order_acquire)) {
    bool busy = serveAll();
    if (!busy) {
      bell_.arm();
      busy = serveAll() || stopping_.load(std::memory_order_acquire);
    }
    countSystemCall();
    const int count = epoll_wait(epoll_.get(), ready.data(), ready.size(), busy ? 0 : -1);
    bell_.disarm();
    for (int i = 0; i < count; ++i) {
      // Rails that are ready are alive: they are dropped only by serveAll, after they were
      // unwatched.
      auto* const rail = static_cast<ThreadedRail*>(ready[i].data.ptr);
      if (rail == kBell) {
        bell_.clear();
      } else {
        rail->serve(*this, ready[i].events);
      }
    }
  }
}

}  // namespace faultline::transport::tcp
