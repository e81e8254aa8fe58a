#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/units.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/socket.h"
#include "injector/rdma/known_device.h"
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

  /// To be called before it is acted on, if that is some time after it was opened: a device that
  /// was made again since is looked up by its name (sameOrMadeAgain()). kUnavailable when it is
  /// gone.
  Status findAgain();

  const Device& device() const { return known_.device; }
  DeviceIdentity identity() const { return known_.identity(); }
  const CharacterDevice& character() const { return known_.character; }
  /// As it was when it was looked up.
  const Port& portAtFirst() const { return known_.port; }
  /// "rxe0/1".
  std::string portName() const;

  netlink::Socket& rdma() { return rdma_; }
  netlink::Socket& route() { return route_; }

  Result<Port> readPort();
  /// Empty where the driver has none.
  Result<Counters> readCounters();
  /// The network interface behind the port; kUnsupported when there is none in this namespace.
  Result<netlink::NetDevice> readNetdev();

  /// kUnavailable when the port does not work even now.
  Status requireActive();
  /// Refuses an interface that is needed for something else (netlink::whyIndispensable()): a
  /// default route, this ssh session, a network file system. For all that takes an interface down,
  /// slows it down, or drops what is not RDMA.
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
  Result<KnownDevice> lookUp(const std::string& name, std::uint32_t port);

  netlink::Socket rdma_;
  netlink::Socket route_;
  KnownDevice known_;
};

}  // namespace faultline::rdma
