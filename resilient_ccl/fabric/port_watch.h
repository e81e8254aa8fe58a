#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace faultline::fabric {

/// Tells when a network port of this process's namespace loses or regains its carrier, or gets or
/// loses an IPv4 address, through rtnetlink events. Polled: call `poll` when `fd()` is readable.
class PortWatch {
 public:
  /// Interfaces and IPv4 addresses that they have, in host byte order.
  using Addresses = std::vector<std::pair<int, std::uint32_t>>;

  struct Events {
    /// usable = administratively up and with carrier.
    std::function<void(int interface, bool usable)> port;
    /// `address` in host byte order; present = false: it is gone.
    std::function<void(int interface, std::uint32_t address, bool present)> address;
    /// All that there are now.
    std::function<void(const Addresses& addresses)> addresses;
  };

  static Result<std::unique_ptr<PortWatch>> open(Events events);
  ~PortWatch();

  int fd() const;
  /// Reads all waiting events. When the kernel had to drop some, asks for the state of all ports
  /// and for all addresses.
  Status poll();
  /// Asks for the present state of every port and for all addresses: told by later polls.
  Status reportAll();

 private:
  class Impl;
  explicit PortWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace faultline::fabric
