#include "resilient_ccl/channel/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"

namespace faultline::channel {
namespace {

std::vector<std::byte> example() {
  DatagramWriter writer;
  const std::vector<RailReceipt> rails{RailReceipt::of(3, {.base = 17, .beyond = 5}), {}};
  writer.begin({.source = 1, .destination = 2, .path = 1, .control = {.base = 4}}, rails);
  const GrantRecord grant{
      .key = {.communicator = 7, .sequence = 8, .stream = 9}, .capacity = 10, .slot = 11};
  const ProbeRecord probe{.round = 12};
  EXPECT_TRUE(writer.add({RecordType::kGrant, 5, bytesOf(grant)}));
  EXPECT_TRUE(writer.add({RecordType::kProbe, 0, bytesOf(probe)}));
  const auto bytes = writer.finish();
  return {bytes.begin(), bytes.end()};
}

TEST(WireTest, WhatIsWrittenIsRead) {
  const auto bytes = example();
  Datagram datagram;
  ASSERT_TRUE(parseDatagram(bytes, datagram).ok());
  EXPECT_EQ(datagram.header.source, 1u);
  EXPECT_EQ(datagram.header.control.base, 4u);
  ASSERT_EQ(datagram.rails.size(), 2u);
  EXPECT_EQ(datagram.rails[0].after({}), (Receipt{.base = 17, .beyond = 5}));
  ASSERT_EQ(datagram.records.size(), 2u);
  EXPECT_EQ(payloadAs<GrantRecord>(datagram.records[0])->key.stream, 9u);
  EXPECT_EQ(payloadAs<ProbeRecord>(datagram.records[1])->round, 12u);
  EXPECT_FALSE(payloadAs<RailRecord>(datagram.records[1]).ok());
}

TEST(WireTest, ReceiptsAreWholeAgainBesideOnesThatWereToldBefore) {
  const std::uint64_t wraps = std::uint64_t{1} << 32;
  for (const std::uint64_t base : {std::uint64_t{0}, wraps - 2, wraps, wraps + 3, 5 * wraps + 7}) {
    const Receipt received{.base = base, .beyond = 0x8001};
    const RailReceipt told = RailReceipt::of(70'000, received);
    EXPECT_TRUE(told.isOf(70'000));
    EXPECT_FALSE(told.isOf(70'001));
    for (const std::uint64_t before : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{65}}) {
      const std::uint64_t earlier = base - std::min(base, before);
      EXPECT_EQ(told.after({.base = earlier}), received);
      EXPECT_EQ(told.after({.base = base + before}), received) << "an old one stays old";
    }
  }
  // Of more than it has room for it tells less, and nothing that is wrong.
  const Receipt much{.base = 9, .beyond = ~std::uint64_t{0}};
  const Receipt told = RailReceipt::of(1, much).after({.base = 9});
  EXPECT_EQ(told, (Receipt{.base = 9, .beyond = 0xffff}));
  EXPECT_TRUE(much.covers(told));
}

TEST(WireTest, EveryTruncationIsRefused) {
  const auto bytes = example();
  Datagram datagram;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parseDatagram(std::span(bytes).first(length), datagram).ok()) << length;
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(parseDatagram(longer, datagram).ok());
}

TEST(WireTest, RandomBytesNeverReachBeyondTheDatagram) {
  Random random(5);
  const auto good = example();
  Datagram datagram;
  for (int i = 0; i < 20000; ++i) {
    auto bytes = good;
    for (int change = 0; change < 4; ++change) {
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random());
    }
    bytes.resize(random.below(bytes.size() + 1));
    if (!parseDatagram(bytes, datagram).ok()) continue;
    for (const Record& record : datagram.records) {
      ASSERT_GE(record.payload.data(), bytes.data());
      ASSERT_LE(record.payload.data() + record.payload.size(), bytes.data() + bytes.size());
    }
  }
}

TEST(WireTest, ADatagramIsNeverLargerThanItsLimit) {
  DatagramWriter writer;
  writer.begin({}, std::vector<RailReceipt>(8));
  const GrantRecord grant{};
  int added = 0;
  while (writer.add({RecordType::kGrant, 1, bytesOf(grant)})) ++added;
  EXPECT_GT(added, 10);
  EXPECT_LE(writer.finish().size(), kMaxDatagram);
}

}  // namespace
}  // namespace faultline::channel
