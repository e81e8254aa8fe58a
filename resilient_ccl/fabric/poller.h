#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "base/own_process.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::fabric {

/// Calls a handler for each descriptor that is ready (epoll, level-triggered). Not thread-safe.
class Poller {
 public:
  using Handler = std::function<void(std::uint32_t events)>;

  Status open();
  /// `fd` stays the caller's, who removes it before it is closed: the kernel would go on to report
  /// one that a child of fork still has a copy of.
  Status add(int fd, std::uint32_t events, Handler handler);
  void setEvents(int fd, std::uint32_t events);
  void remove(int fd);

  /// Waits at most `timeout`, and calls the handlers of what is ready: of how many descriptors.
  /// Handlers may add and remove.
  Result<int> wait(Duration timeout);

 private:
  UniqueFd epoll_;
  OwnProcess process_;
  std::unordered_map<int, std::shared_ptr<Handler>> handlers_;
};

}  // namespace faultline::fabric
