#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>

#include "base/status.h"
#include "resilient_ccl/fabric/nic_homes.h"

namespace faultline::fabric {

/// Tells when a network port of this process's namespace comes or goes, loses or regains its
/// carrier, or gets or loses an IPv4 address, through rtnetlink events. Polled: call `poll` when
/// `fd()` is readable.
class PortWatch {
 public:
  using Addresses = NicHomes::Addresses;

  struct Events {
    std::function<void(const Port& port)> port;
    /// The indices of all that there are now; each has been told by `port`.
    std::function<void(const std::set<int>& indices)> ports;
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
