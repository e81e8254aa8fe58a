#include "injector/rdma/steering_commands.h"

namespace faultline::rdma {
namespace {

constexpr std::size_t kBitsPerByte = 8;

/// Counted in bits from the start of the command or answer.
struct Field {
  std::size_t first;
  std::size_t width;
};

// Of all commands.
constexpr Field kOpcode{0x00, 16};
constexpr Field kModifier{0x30, 16};
// Of all commands for flow tables.
constexpr Field kTableType{0x80, 8};
constexpr Field kTable{0xa8, 24};
// CREATE_FLOW_TABLE: in the table's context, which begins at 0xc0.
constexpr Field kLevel{0xc0 + 0x08, 8};
// SET_FLOW_TABLE_ENTRY: in the entry's context, which begins at 0x200.
constexpr Field kGroup{0x200 + 0x20, 32};
constexpr Field kAction{0x200 + 0x70, 16};
// Of all answers; a number only where something was made.
constexpr Field kStatus{0x00, 8};
constexpr Field kSyndrome{0x20, 32};
constexpr Field kNumber{0x48, 24};
// QUERY_HCA_CAP: one block for each kind of flow table, all alike, after the answer's head (0x80)
// and that of the capabilities (0x200).
constexpr std::size_t kBlockBits = 0x200;
constexpr std::size_t kReceiveRdma = 0x80 + 0x200 + 1 * kBlockBits;
constexpr std::size_t kTransmitRdma = 0x80 + 0x200 + 4 * kBlockBits;
constexpr Field kSupported{0x00, 1};
constexpr Field kMostLevels{0x38, 8};

constexpr std::uint32_t kQueryCapabilities = 0x100;
constexpr std::uint32_t kCreateFlowTable = 0x930;
constexpr std::uint32_t kCreateFlowGroup = 0x933;
constexpr std::uint32_t kSetFlowTableEntry = 0x936;
constexpr std::uint32_t kCurrentOfNicFlowTables = 0x7 << 1 | 1;
constexpr std::uint32_t kReceiveRdmaType = 0x7;
constexpr std::uint32_t kDrop = 0x2;

constexpr std::size_t kQueryBytes = 16;
constexpr std::size_t kCreateTableBytes = 64;
constexpr std::size_t kCreateGroupBytes = 1024;
constexpr std::size_t kSetEntryBytes = 832;

void putField(SteeringCommand& command, Field field, std::uint32_t value) {
  for (std::size_t i = 0; i < field.width; ++i) {
    const std::size_t bit = field.first + field.width - 1 - i;
    const auto mask = static_cast<std::uint8_t>(0x80 >> bit % kBitsPerByte);
    if ((value >> i & 1) != 0) command[bit / kBitsPerByte] |= mask;
  }
}

std::uint32_t readField(std::span<const std::uint8_t> answer, Field field) {
  if (answer.size() * kBitsPerByte < field.first + field.width) return 0;
  std::uint32_t value = 0;
  for (std::size_t bit = field.first; bit < field.first + field.width; ++bit) {
    const auto mask = static_cast<std::uint8_t>(0x80 >> bit % kBitsPerByte);
    value = value << 1 | ((answer[bit / kBitsPerByte] & mask) != 0 ? 1 : 0);
  }
  return value;
}

Field within(std::size_t block, Field field) { return {block + field.first, field.width}; }

SteeringCommand commandOf(std::size_t bytes, std::uint32_t opcode) {
  SteeringCommand command(bytes);
  putField(command, kOpcode, opcode);
  return command;
}

SteeringCommand ofTable(std::size_t bytes, std::uint32_t opcode, std::uint32_t table) {
  SteeringCommand command = commandOf(bytes, opcode);
  putField(command, kTableType, kReceiveRdmaType);
  putField(command, kTable, table);
  return command;
}

}  // namespace

SteeringCommand askFlowTableCapabilities() {
  SteeringCommand command = commandOf(kQueryBytes, kQueryCapabilities);
  putField(command, kModifier, kCurrentOfNicFlowTables);
  return command;
}

SteeringCommand createReceiveTable(std::uint8_t level) {
  SteeringCommand command = commandOf(kCreateTableBytes, kCreateFlowTable);
  putField(command, kTableType, kReceiveRdmaType);
  putField(command, kLevel, level);
  return command;
}

SteeringCommand createGroup(std::uint32_t table) {
  return ofTable(kCreateGroupBytes, kCreateFlowGroup, table);
}

SteeringCommand createDropEntry(std::uint32_t table, std::uint32_t group) {
  SteeringCommand command = ofTable(kSetEntryBytes, kSetFlowTableEntry, table);
  putField(command, kGroup, group);
  putField(command, kAction, kDrop);
  return command;
}

FirmwareVerdict parseVerdict(std::span<const std::uint8_t> answer) {
  return {static_cast<std::uint8_t>(readField(answer, kStatus)), readField(answer, kSyndrome)};
}

std::uint32_t parseNumber(std::span<const std::uint8_t> answer) {
  return readField(answer, kNumber);
}

FlowTableCapabilities parseFlowTableCapabilities(std::span<const std::uint8_t> answer) {
  return {.receive = readField(answer, within(kReceiveRdma, kSupported)) != 0,
          .transmit = readField(answer, within(kTransmitRdma, kSupported)) != 0,
          .receive_levels =
              static_cast<std::uint8_t>(readField(answer, within(kReceiveRdma, kMostLevels)))};
}

}  // namespace faultline::rdma
