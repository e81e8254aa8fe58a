#include "injector/faults/checked_probe.h"

#include <gtest/gtest.h>

#include <utility>

namespace faultline::injector {
namespace {

constexpr std::uint16_t kMark = 0x1234;
constexpr std::size_t kChecksumAt = 26;
constexpr std::size_t kPayloadAt = 28;

CheckedCounts countsOf(const CheckedDatagram::Packet& packet, std::uint16_t mark = kMark) {
  CheckedCounts counts;
  CheckedDatagram::count(packet, packet.size(), mark, counts);
  return counts;
}

/// RFC 1624, equation 3.
void followChecksum(CheckedDatagram::Packet& packet, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t old = packet[kChecksumAt] * 256U + packet[kChecksumAt + 1];
  std::uint32_t sum = (~old & 0xffff) + (~from & 0xffff) + to;
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  packet[kChecksumAt] = static_cast<std::uint8_t>(~sum >> 8);
  packet[kChecksumAt + 1] = static_cast<std::uint8_t>(~sum);
}

TEST(CheckedDatagramTest, IsIntactAsItWasMade) {
  const CheckedCounts counts = countsOf(CheckedDatagram::make(kMark));
  EXPECT_EQ(counts.intact, 1);
  EXPECT_EQ(counts.wrong_checksum + counts.believed, 0);
}

TEST(CheckedDatagramTest, EveryChangeOfAByteIsSeenByItsChecksum) {
  for (std::size_t i = kPayloadAt; i < CheckedDatagram::kBytes; ++i) {
    CheckedDatagram::Packet packet = CheckedDatagram::make(kMark);
    packet[i] ^= 0x5a;
    EXPECT_EQ(countsOf(packet).wrong_checksum, 1) << i;
  }
}

TEST(CheckedDatagramTest, AChangeWhoseChecksumFollowsIsBelieved) {
  CheckedDatagram::Packet packet = CheckedDatagram::make(kMark);
  const std::uint32_t from = packet[kPayloadAt] * 256U + packet[kPayloadAt + 1];
  packet[kPayloadAt] ^= 0x5a;
  packet[kPayloadAt + 1] ^= 0x5a;
  followChecksum(packet, from, packet[kPayloadAt] * 256U + packet[kPayloadAt + 1]);
  const CheckedCounts counts = countsOf(packet);
  EXPECT_EQ(counts.believed, 1);
  EXPECT_EQ(counts.wrong_checksum + counts.intact, 0);
}

TEST(CheckedDatagramTest, OthersAreNotCounted) {
  const CheckedCounts other = countsOf(CheckedDatagram::make(kMark), kMark + 1);
  EXPECT_EQ(other.intact + other.wrong_checksum + other.believed, 0);
  CheckedCounts shorter;
  CheckedDatagram::count(CheckedDatagram::make(kMark), 40, kMark, shorter);
  EXPECT_EQ(shorter.intact + shorter.wrong_checksum + shorter.believed, 0);
}

}  // namespace
}  // namespace faultline::injector
