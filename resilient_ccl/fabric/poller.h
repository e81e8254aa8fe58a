#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::fabric {

/// Calls a handler for each descriptor that is ready (epoll, level-triggered). Not thread-safe.
class Poller {
 public:
  using Handler = std::function<void(std::uint32_t events)>;

  Status open();
  /// `fd` stays the caller's; a closed one leaves the set by itself, its handler by `forget`.
  Status add(int fd, std::uint32_t events, Handler handler);
  void setEvents(int fd, std::uint32_t events);
  void remove(int fd);
  /// Drops the handler of a descriptor that has been closed.
  void forget(int fd) { handlers_.erase(fd); }

  /// Waits at most `timeout`, and calls the handlers of what is ready. Handlers may add and remove.
  Status wait(Duration timeout);

 private:
  UniqueFd epoll_;
  std::unordered_map<int, std::shared_ptr<Handler>> handlers_;
};

}  // namespace faultline::fabric
