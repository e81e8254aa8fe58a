#include "resilient_ccl/channel/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

TEST(WireTest, ARecordOfMoreThanTheLongestPayloadIsRefused) {
  const std::vector<std::byte> payload(Record::kMaxPayload + 1, std::byte{7});
  for (const std::size_t length : {Record::kMaxPayload, Record::kMaxPayload + 1}) {
    DatagramWriter writer;
    writer.begin({.source = 1, .destination = 2, .control = {}}, {});
    ASSERT_TRUE(writer.add({RecordType::kNote, 5, std::span(payload).first(length)}));
    const auto bytes = writer.finish();
    Datagram datagram;
    EXPECT_EQ(parseDatagram(bytes, datagram).ok(), length == Record::kMaxPayload) << length;
  }
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

TEST(WireTest, GrantsThatFollowEachOtherAreOneRecord) {
  constexpr std::uint32_t kLast = ~std::uint32_t{0};
  GrantRecord grant{.key = {7, kLast - 1, 9}, .capacity = 10, .slot = 30, .eager = 1};
  GrantsRecord grants;
  std::vector<GrantRecord> all;
  for (std::uint32_t i = 0; i < GrantsRecord::kMost; ++i, ++grant.key.sequence, grant.slot *= 3) {
    for (const auto& spoil : std::array<void (*)(GrantRecord&), 7>{
             [](GrantRecord& it) { ++it.key.communicator; },
             [](GrantRecord& it) { ++it.key.stream; }, [](GrantRecord& it) { ++it.key.sequence; },
             [](GrantRecord& it) { ++it.capacity; }, [](GrantRecord& it) { it.eager = 0; },
             [](GrantRecord& it) { it.address = 1; }, [](GrantRecord& it) { it.regionKey = 1; }}) {
      GrantRecord other = grant;
      spoil(other);
      EXPECT_TRUE(i == 0 || !grants.add(other));
    }
    ASSERT_TRUE(grants.add(grant));
    all.push_back(grant);
    const auto bytes = bytesOf(grants);
    EXPECT_EQ(bytes.size(), 32 + 4 * (i + 1));
    const auto read = payloadAs<GrantsRecord>({RecordType::kGrants, 1, bytes});
    ASSERT_TRUE(read.ok());
    ASSERT_EQ(read->count, i + 1);
    for (std::uint32_t j = 0; j <= i; ++j) {
      const GrantRecord it = read->at(j);
      EXPECT_EQ(it.key, all[j].key);
      EXPECT_EQ(it.capacity, all[j].capacity);
      EXPECT_EQ(it.slot, all[j].slot);
      EXPECT_EQ(it.eager, 1u);
    }
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
      EXPECT_FALSE(payloadAs<GrantsRecord>({RecordType::kGrants, 1, bytes.first(cut)}).ok());
    }
  }
  EXPECT_FALSE(grants.add(grant)) << "no more than it has room for";
}

TEST(WireTest, GrantsThatLieAboutTheirNumberAreRefused) {
  GrantsRecord grants;
  ASSERT_TRUE(grants.add({}));
  std::vector<std::byte> bytes(sizeof(GrantsRecord) + 8);
  const auto refused = [&](std::uint32_t count, std::size_t size) {
    grants.count = count;
    std::memcpy(bytes.data(), &grants, sizeof(grants));
    const Record record{RecordType::kGrants, 1, std::span(bytes).first(size)};
    return !payloadAs<GrantsRecord>(record).ok();
  };
  EXPECT_FALSE(refused(GrantsRecord::kMost, sizeof(grants)));
  EXPECT_TRUE(refused(GrantsRecord::kMost + 1, sizeof(grants) + 4));
  EXPECT_TRUE(refused(GrantsRecord::kMost, sizeof(grants) - 4));
  EXPECT_TRUE(refused(1, sizeof(grants)));
  EXPECT_TRUE(refused(0, sizeof(grants) - sizeof(grants.slots)));
  EXPECT_TRUE(refused(~std::uint32_t{0}, sizeof(grants) - sizeof(grants.slots) - 4));
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
