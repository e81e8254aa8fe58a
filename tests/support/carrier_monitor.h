#pragma once

#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::test {

/// Listens to the kernel's events about one interface, as the fabric of a rank does.
class CarrierMonitor {
 public:
  struct Event {
    TimePoint when;
    bool carrier = false;
  };
  static Result<CarrierMonitor> open(int namespace_fd, int ifindex);

  /// Changes of carrier that have been reported so far.
  const std::vector<Event>& changes();

  /// Waits until the kernel has reported this carrier last; false when it does not within `budget`.
  bool await(bool carrier, Duration budget);

 private:
  CarrierMonitor(UniqueFd fd, int ifindex) : fd_(std::move(fd)), ifindex_(ifindex) {}
  UniqueFd fd_;
  int ifindex_;
  bool carrier_ = true;
  std::vector<Event> changes_;
};

}  // namespace faultline::test
