#include "injector/rdma/steering_commands.h"

#include <gtest/gtest.h>

#include <map>

namespace faultline::rdma {
namespace {

// Offsets are counted by hand in the device's structures, in bytes; what is not named is zero.
using Named = std::map<std::size_t, std::uint8_t>;

void expectBytes(const SteeringCommand& command, std::size_t size, const Named& named) {
  ASSERT_EQ(command.size(), size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto found = named.find(i);
    EXPECT_EQ(command[i], found == named.end() ? 0 : found->second) << "byte " << i;
  }
}

// create_flow_table_in, create_flow_table_out and the like: an answer that says that all is well.
std::vector<std::uint8_t> numberAnswer() {
  return {0x00, 0xaa, 0xbb, 0xcc,   // status; icm_address_63_40
          0x00, 0x00, 0x00, 0x00,   // syndrome
          0xdd, 0x12, 0x34, 0x56,   // icm_address_39_32; the number
          0xee, 0xee, 0xee, 0xee};  // icm_address_31_0
}

TEST(SteeringCommandsTest, AsksForTheCapabilitiesOfTheNicsFlowTables) {
  expectBytes(askFlowTableCapabilities(), 16,
              {{0, 0x01},
               {1, 0x00},  // QUERY_HCA_CAP
               {6, 0x00},
               {7, 0x0f}});  // op_mod: NIC flow tables (7), current
}

TEST(SteeringCommandsTest, ATableForWhatIsReceived) {
  expectBytes(createReceiveTable(0x3f), 64,
              {{0, 0x09},
               {1, 0x30},     // CREATE_FLOW_TABLE
               {16, 0x07},    // table_type: NIC_RX_RDMA
               {25, 0x3f}});  // flow_table_context at 24: flags, level, reserved, log_size
}

TEST(SteeringCommandsTest, AGroupThatLooksAtNoHeader) {
  expectBytes(createGroup(0xabcdef), 1024,
              {{0, 0x09},
               {1, 0x33},   // CREATE_FLOW_GROUP
               {16, 0x07},  // table_type
               {21, 0xab},
               {22, 0xcd},
               {23, 0xef}});
  // start_flow_index (28), end_flow_index (36), match_criteria_enable (63), match_criteria (64)
}

TEST(SteeringCommandsTest, AnEntryThatDrops) {
  expectBytes(createDropEntry(0x123456, 0x89abcdef), 832,
              {{0, 0x09},
               {1, 0x36},   // SET_FLOW_TABLE_ENTRY
               {16, 0x07},  // table_type
               {21, 0x12},
               {22, 0x34},
               {23, 0x56},
               // flow_context at 64: push_vlan, group_id, flow_tag, action
               {68, 0x89},
               {69, 0xab},
               {70, 0xcd},
               {71, 0xef},
               {79, 0x02}});
}

TEST(SteeringCommandsTest, NumbersAreTheLastThreeBytesOfTheirWord) {
  EXPECT_EQ(parseNumber(numberAnswer()), 0x123456u);
  EXPECT_EQ(parseVerdict(numberAnswer()).status, 0);
  EXPECT_EQ(parseVerdict(numberAnswer()).syndrome, 0u);
}

TEST(SteeringCommandsTest, RefusalsHaveAStatusAndASyndrome) {
  const std::vector<std::uint8_t> answer{0x03, 0, 0, 0, 0x00, 0x6b, 0x8c, 0x4a,
                                         0,    0, 0, 0, 0,    0,    0,    0};
  EXPECT_EQ(parseVerdict(answer).status, 0x03);
  EXPECT_EQ(parseVerdict(answer).syndrome, 0x006b8c4au);
}

// flow_table_nic_cap begins at byte 16; of its blocks of 64 bytes, from byte 64 of it on, the
// second is for RDMA that is received, and the fifth for what is sent.
constexpr std::size_t kReceiveBlock = 16 + 64 + 64;
constexpr std::size_t kTransmitBlock = 16 + 64 + 4 * 64;
constexpr std::size_t kLevelsOfReceive = kReceiveBlock + 7;

TEST(SteeringCommandsTest, TablesAreSupportedByOneBit) {
  std::vector<std::uint8_t> answer(kFlowTableCapabilityBytes);
  EXPECT_FALSE(parseFlowTableCapabilities(answer).receive);
  EXPECT_FALSE(parseFlowTableCapabilities(answer).transmit);
  answer[kReceiveBlock] = 0x80;
  answer[kLevelsOfReceive] = 0xc8;
  FlowTableCapabilities tables = parseFlowTableCapabilities(answer);
  EXPECT_TRUE(tables.receive);
  EXPECT_EQ(tables.receive_levels, 200);
  EXPECT_FALSE(tables.transmit);
  answer[kReceiveBlock] = 0x00;
  answer[kTransmitBlock] = 0x80;
  tables = parseFlowTableCapabilities(answer);
  EXPECT_FALSE(tables.receive);
  EXPECT_TRUE(tables.transmit);
}

TEST(SteeringCommandsTest, NoOtherBitSaysSo) {
  std::vector<std::uint8_t> answer(kFlowTableCapabilityBytes, 0xff);
  answer[kReceiveBlock] = 0x7f;
  answer[kTransmitBlock] = 0x7f;
  answer[kLevelsOfReceive] = 0;
  const FlowTableCapabilities tables = parseFlowTableCapabilities(answer);
  EXPECT_FALSE(tables.receive);
  EXPECT_FALSE(tables.transmit);
  EXPECT_EQ(tables.receive_levels, 0);
}

TEST(SteeringCommandsTest, CutAnswersReadAsZero) {
  const std::vector<std::uint8_t> number = numberAnswer();
  for (std::size_t size = 0; size <= number.size(); ++size) {
    // A copy of just that size, so that the address sanitizer sees who reads on.
    const std::vector<std::uint8_t> cut(number.begin(),
                                        number.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(parseNumber(cut), size < 12 ? 0 : 0x123456u) << size;
    EXPECT_EQ(parseVerdict(cut).syndrome, 0u);
  }
  for (const std::size_t size : {std::size_t{0}, kReceiveBlock, kReceiveBlock + 1, kLevelsOfReceive,
                                 kLevelsOfReceive + 1, kTransmitBlock, kTransmitBlock + 1}) {
    const std::vector<std::uint8_t> cut(size, 0xff);
    const FlowTableCapabilities tables = parseFlowTableCapabilities(cut);
    EXPECT_EQ(tables.receive, size > kReceiveBlock) << size;
    EXPECT_EQ(tables.receive_levels, size > kLevelsOfReceive ? 0xff : 0) << size;
    EXPECT_EQ(tables.transmit, size > kTransmitBlock) << size;
  }
}

}  // namespace
}  // namespace faultline::rdma
