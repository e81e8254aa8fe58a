#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace faultline::fabric {

/// Tells when a network port of this process's namespace loses or regains its carrier, or gets or
/// loses an IPv4 address, through rtnetlink events. Polled: call `poll` when `fd()` is readable.
class PortWatch {
 public:
  struct Events {
    /// usable = administratively up and with carrier.
    std::function<void(int interface, bool usable)> port;
    /// `address` in host byte order; present = false: it is gone.
    std::function<void(int interface, std::uint32_t address, bool present)> address;
  };

  static Result<std::unique_ptr<PortWatch>> open(Events events);
  ~PortWatch();

  int fd() const;
  /// Reads all waiting events. When the kernel had to drop some, asks for the state of all ports.
  Status poll();
  /// Reports the present state of every port through `port`.
  Status reportAll();

 private:
  class Impl;
  explicit PortWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace faultline::fabric
