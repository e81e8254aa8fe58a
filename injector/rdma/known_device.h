#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "injector/rdma/device_class.h"
#include "injector/rdma/nldev_messages.h"

namespace faultline::rdma {

/// One port of a device, as it was when somebody looked it up.
struct KnownDevice {
  Device device;
  Port port;
  CharacterDevice character;
  DeviceClass device_class = DeviceClass::kOtherEthernet;

  DeviceIdentity identity() const { return {device.name, device_class}; }
};

/// kNotFound, with the ports that there are, when the device does not have this one.
Status requirePort(const Device& device, std::uint32_t port);

/// Looks up what has the name of the known device now, and its port; kNotFound: nothing.
using LookUp = std::function<Result<KnownDevice>()>;

/// The known device while the kernel lists it. A device that was deleted and made again has another
/// number in the kernel: then the one of the same name, if it is of the same class and over the
/// same network interface. kUnavailable when there is none, or another one. Pure but for `look_up`,
/// which is called only when the known one is gone.
Result<KnownDevice> sameOrMadeAgain(const KnownDevice& known, const std::vector<Device>& listed,
                                    const LookUp& look_up);

}  // namespace faultline::rdma
