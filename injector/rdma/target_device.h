#pragma once

#include <string>

#include "base/status.h"
#include "base/units.h"
#include "injector/netlink/link.h"
#include "injector/netlink/socket.h"
#include "injector/rdma/device_class.h"
#include "injector/rdma/nldev.h"
#include "injector/rdma/rdma_target.h"

namespace faultline::rdma {

/// One port of an RDMA device with the sockets through which it is looked at and changed. Not
/// thread-safe.
class TargetDevice {
 public:
  /// In the network namespace of the calling thread. kNotFound, with the names that exist, when
  /// there is no such device or port.
  static Result<TargetDevice> open(const RdmaTarget& target);

  const Device& device() const { return device_; }
  DeviceIdentity identity() const { return {device_.name, class_}; }
  const CharacterDevice& character() const { return character_; }
  /// As it was when opened.
  const Port& portAtFirst() const { return port_; }
  /// "rxe0/1".
  std::string portName() const;

  netlink::Socket& rdma() { return rdma_; }
  netlink::Socket& route() { return route_; }

  Result<Port> readPort();
  /// Empty where the driver has none.
  Result<Counters> readCounters();
  /// The network interface behind the port; kUnsupported when there is none in this namespace.
  Result<netlink::Link> readNetdev();

  /// kUnavailable when the port does not work even now.
  Status requireActive();
  /// Refuses an interface over which a default route leads.
  Status requireNotManagement();
  /// Refuses a bond and its members: there the port follows the bond, not the interface.
  Status requireNoBond();

  /// Waits until the port is active and its link up; kDeadlineExceeded when that does not happen.
  Status awaitActive();

  /// What the interface's driver says; 0: it does not know.
  BitsPerSecond linkRate() const;

 private:
  TargetDevice(netlink::Socket rdma, netlink::Socket route)
      : rdma_(std::move(rdma)), route_(std::move(route)) {}

  netlink::Socket rdma_;
  netlink::Socket route_;
  Device device_;
  Port port_;
  CharacterDevice character_;
  DeviceClass class_ = DeviceClass::kOtherEthernet;
};

}  // namespace faultline::rdma
