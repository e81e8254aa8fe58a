#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "injector/faults/rdma_adapter_silence.h"
#include "injector/rdma/target_device.h"

namespace faultline::injector {

/// Packets that the device has received, by the first of the counters that its driver has; in the
/// absence of all, those of its network interface (which does not see the RDMA packets of
/// adapters).
Result<std::uint64_t> receivedPackets(rdma::TargetDevice& device);

/// The same of a set of counters; nothing when none of the known ones is there. Pure.
std::optional<std::uint64_t> receivedPackets(const rdma::Counters& counters);
/// Packets that the device meant to send.
std::optional<std::uint64_t> sentPackets(const rdma::Counters& counters);

/// Bytes that the port has sent, as the adapter itself counts (sysfs, port_xmit_data). kUnsupported
/// where there is no such counter.
Result<std::uint64_t> sentBytes(const rdma::TargetDevice& device);

/// What an adapter of mlx5 counts of its transport; where a counter is missing, nothing of it.
/// Pure.
AdapterCounts transportCounts(const rdma::Counters& counters);
/// The same with the port's packets (sysfs, port_xmit_packets and port_rcv_packets). kUnsupported
/// where the port has no such counters.
Result<AdapterCounts> readAdapterCounts(rdma::TargetDevice& device);

}  // namespace faultline::injector
