#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace faultline::fabric {

/// Tells when a network port of this process's namespace loses or regains its carrier, through
/// rtnetlink link events. Polled: call `poll` when `fd()` is readable.
class PortWatch {
 public:
  /// `changed(interface index, usable)`: usable = administratively up and with carrier.
  using Changed = std::function<void(int interface, bool usable)>;

  static Result<std::unique_ptr<PortWatch>> open(Changed changed);
  ~PortWatch();

  int fd() const;
  /// Reads all waiting events. When the kernel had to drop some, asks for the state of all ports.
  Status poll();
  /// Reports the present state of every port through `changed`.
  Status reportAll();

 private:
  class Impl;
  explicit PortWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace faultline::fabric
