#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Commands to the firmware of an mlx5 adapter, which a verbs context hands on as they are (DEVX).
/// The layout is the device's: big-endian, fields counted in bits from the start (the kernel's
/// linux/mlx5/mlx5_ifc.h). They make a flow table that drops whatever is sent to it. Pure.
///
/// Unproven on hardware: the bytes are exact and tested, no adapter has been given them.
namespace faultline::rdma {

using SteeringCommand = std::vector<std::uint8_t>;

/// How long the answers are.
inline constexpr std::size_t kSteeringAnswerBytes = 16;
inline constexpr std::size_t kFlowTableCapabilityBytes = 16 + 4096;

/// Asks what flow tables the firmware has (QUERY_HCA_CAP, those of the NIC).
SteeringCommand askFlowTableCapabilities();
/// A table for RDMA that is received, with room for one entry (CREATE_FLOW_TABLE). A table leads
/// only to those of a higher level.
SteeringCommand createReceiveTable(std::uint8_t level);
/// That entry's group, which looks at no header (CREATE_FLOW_GROUP): all packets match.
SteeringCommand createGroup(std::uint32_t table);
/// The entry: what matches is dropped (SET_FLOW_TABLE_ENTRY).
SteeringCommand createDropEntry(std::uint32_t table, std::uint32_t group);

/// What the firmware says to any command; a status of 0: done.
struct FirmwareVerdict {
  std::uint8_t status = 0;
  std::uint32_t syndrome = 0;  ///< which check has failed; only its maker knows more
};

/// Of the tables for RDMA.
struct FlowTableCapabilities {
  bool receive = false;
  bool transmit = false;
  std::uint8_t receive_levels = 0;
};

/// Answers that are cut read as zero.
FirmwareVerdict parseVerdict(std::span<const std::uint8_t> answer);
/// The number of the table or group that was made.
std::uint32_t parseNumber(std::span<const std::uint8_t> answer);
FlowTableCapabilities parseFlowTableCapabilities(std::span<const std::uint8_t> answer);

}  // namespace faultline::rdma
