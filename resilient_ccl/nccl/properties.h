#pragma once

#include <cstdint>

#include "resilient_ccl/nccl/device.h"
#include "resilient_ccl/nccl/net_api.h"
#include "resilient_ccl/nccl/pair.h"

namespace faultline::nccl {

/// What NCCL is told of the device `number`, in the structure of one version of its interface. Its
/// words are the device's, and live as long.
template <typename Properties>
Properties propertiesOf(const Device& device, int number) {
  // Latency is not told, as NCCL's own sockets do not: by its model a network with the 20 us of TCP
  // wants trees for short AllReduces, which take longer than its rings do (docs/gpu.md).
  constexpr float kLatency = 0;
  constexpr int kMostConnections = 65536;
  constexpr int kNotKnown = -1;
  Properties its{};
  its.name = const_cast<char*>(device.interface.name.c_str());
  its.pciPath = device.pciPath.empty() ? nullptr : const_cast<char*>(device.pciPath.c_str());
  its.guid = device.guid;
  its.pointerSupport = kNetPointerHost;
  its.registrationIsGlobal = 1;
  its.speed = device.speed;
  its.port = device.port;
  its.latency = kLatency;
  its.maxConnections = kMostConnections;
  its.maxReceives = kMostReceives;
  its.virtualDevice.count = 1;
  its.virtualDevice.devices[0] = number;
  its.maxPointToPointBytes = its.maxCollectiveBytes = kNetMaxBytes;
  if constexpr (requires { its.maxMultiRequest; }) its.maxMultiRequest = 1;
  if constexpr (requires { its.railId; }) {
    its.railId = static_cast<std::int16_t>(number);
    its.planeId = kNotKnown;
  }
  return its;
}

}  // namespace faultline::nccl
