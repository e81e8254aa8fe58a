#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "resilient_ccl/channel/link.h"

// A peer that knows the job's key and lies: nothing that it says may make this end write outside a
// slot, write into memory that has been given back, or grow without bound.

namespace faultline::channel {
namespace {

class HostilePeerTest : public ::testing::Test, protected LinkIo {
 protected:
  static constexpr Bytes kChunk = 64 << 10;
  /// A message that is one chunk however many rails there are.
  static constexpr Bytes kAlone = kChunk / transport::Cut::kMostParts;

  void SetUp() override {
    LinkOptions options;
    options.rails = 2;
    link_ = std::make_unique<Link>(
        Link::Identity{.self = 1, .peer = 0, .name = "rank 0", .connects = false}, options,
        static_cast<LinkIo&>(*this), now_);
    for (int rail = 0; rail < 2; ++rail) link_->onRailOpened(rail, 1, now_);
  }

  std::uint32_t receive(Bytes capacity) {
    region_.resize(capacity);
    link_->postReceive({1, 0, 0}, region_.data(), capacity, {}, 1, now_);
    return 0;  // the first slot
  }
  /// What a rail that reads a whole chunk at once does.
  bool arrive(int rail, const ChunkHeader& header) {
    if (!link_->place(rail, header, now_).ok()) return false;
    link_->onChunkArrived(rail, header, now_);
    return true;
  }
  void record(RecordType type, std::span<const std::byte> payload) {
    Datagram datagram;
    datagram.records.push_back({type, ++sequence_, payload});
    link_->onDatagram(2, datagram, now_);
  }

  /// Which grants went out, each once however often it is repeated.
  void sendDatagram(int, std::span<const std::byte> bytes, Bytes) override {
    Datagram datagram;
    ASSERT_TRUE(parseDatagram(bytes, datagram).ok());
    for (const Record& record : datagram.records) {
      const bool grants = record.type == RecordType::kGrant || record.type == RecordType::kGrants;
      if (grants) grants_.insert(record.sequence);
    }
  }
  void submit(int, const ChunkHeader&, const std::byte*, const RemoteRegion&) override {}
  bool lateWrites(int) const override { return false; }
  bool detach(int, std::uint64_t) override { return false; }
  void divert(int rail) override { diverted_.insert(rail); }
  transport::Delivery delivery(int) const override { return {}; }
  void tellRate(int, double) override {}
  void tellRoom(int) override {}
  void fenceRail(int rail) override { fenced_.insert(rail); }
  void openRail(int, std::uint32_t, std::uint32_t) override {}
  void cancelOpen(int) override {}
  void sendDone(std::uint64_t) override { ++sent_; }
  void receiveDone(std::uint64_t, Bytes) override { ++received_; }
  void sendFailed(std::uint64_t, const Status&) override { ++sendsFailed_; }
  void receiveFailed(std::uint64_t, const Status&) override { ++receivesFailed_; }
  void closeSlot(std::uint32_t) override {}
  void railLost(const Failover&) override {}
  void failedOver(const Failover&) override {}
  void railDegraded(const RailDegradation&) override {}
  void framesLost(int, Bytes) override {}
  void pathProved(const PathProved&) override {}
  bool portLost(int) const override { return false; }
  void causeFound(int, Cause) override {}
  void peerMissing() override {}
  void watchRefusals(bool) override {}
  void failedBack(int, TimePoint) override {}
  void noteArrived(std::span<const std::byte>) override {}
  void linkFailed(const Status& why) override { error_ = why; }

  TimePoint now_ = TimePoint(1s);
  std::unique_ptr<Link> link_;
  std::vector<std::byte> region_;
  std::set<int> fenced_, diverted_;
  std::set<std::uint64_t> grants_;  // records of them
  int sent_ = 0, received_ = 0;
  int sendsFailed_ = 0, receivesFailed_ = 0;
  std::uint64_t sequence_ = 0;
  Status error_;
};

TEST_F(HostilePeerTest, AChunkBehindTheEndOfItsMessageIsRefused) {
  const auto slot = receive(64 * kChunk);
  EXPECT_FALSE(arrive(0, {.sequence = 0,
                          .offset = 64 * kChunk,
                          .messageLength = 64 * kChunk,
                          .slot = slot,
                          .length = 0}));
  EXPECT_TRUE(arrive(0, {.offset = 0, .messageLength = 0, .slot = slot, .length = 0}));
  EXPECT_EQ(received_, 1);
}

TEST_F(HostilePeerTest, TwoLengthsForOneMessageAreRefused) {
  const auto slot = receive(200 * kChunk);
  const ChunkHeader small{.messageLength = kChunk, .slot = slot, .length = kChunk};
  const ChunkHeader large{
      .offset = 199 * kChunk, .messageLength = 200 * kChunk, .slot = slot, .length = kChunk};
  // Both headers are there before one of the payloads is complete.
  ASSERT_TRUE(link_->place(0, large, now_).ok());
  const bool placed = link_->place(1, small, now_).ok();
  if (placed) link_->onChunkArrived(1, small, now_);
  EXPECT_FALSE(placed);
  EXPECT_EQ(received_, 0) << "completed while rail 0 still writes into it";
}

TEST_F(HostilePeerTest, OfOneChunkOverTwoRailsAtOnceOnlyOneIsWrittenInPlace) {
  const auto slot = receive(kAlone);
  const ChunkHeader chunk{.messageLength = kAlone, .slot = slot, .length = kAlone};
  ASSERT_EQ(*link_->place(0, chunk, now_), region_.data());
  const auto staging = link_->place(1, chunk, now_);
  ASSERT_TRUE(staging.ok());
  ASSERT_NE(*staging, nullptr);
  EXPECT_TRUE(*staging + kAlone <= region_.data() || *staging >= region_.data() + kAlone);
  std::fill_n(*staging, kAlone, std::byte{7});
  EXPECT_TRUE(diverted_.empty());

  link_->onChunkArrived(1, chunk, now_);
  EXPECT_EQ(diverted_, std::set{0}) << "rail 0 would write into a message handed over";
  EXPECT_EQ(received_, 1);
  EXPECT_EQ(std::ranges::count(region_, std::byte{7}), kAlone);

  link_->onChunkArrived(0, chunk, now_);  // what was diverted is complete, too
  EXPECT_EQ(received_, 1);
  EXPECT_EQ(link_->counters().chunksArrived, 1u);
  EXPECT_EQ(link_->counters().bytesDuplicate, kAlone);
}

TEST_F(HostilePeerTest, AStagedCopyThatComesLateIsDropped) {
  const auto slot = receive(2 * kChunk);
  const ChunkHeader chunk{.messageLength = 2 * kChunk, .slot = slot, .length = kChunk};
  ASSERT_EQ(*link_->place(0, chunk, now_), region_.data());
  std::fill_n(*link_->place(1, chunk, now_), kChunk, std::byte{7});
  link_->onChunkArrived(0, chunk, now_);
  link_->onChunkArrived(1, chunk, now_);
  EXPECT_EQ(std::ranges::count(region_, std::byte{7}), 0);
  EXPECT_EQ(link_->counters().chunksArrived, 1u);
  EXPECT_EQ(link_->counters().chunksDuplicate, 1u);
  EXPECT_TRUE(diverted_.empty());
}

TEST_F(HostilePeerTest, AWithdrawnChunkIsOnlyANumber) {
  const auto slot = receive(kAlone);
  const ChunkHeader chunk{.messageLength = kAlone, .slot = slot, .length = kAlone};
  EXPECT_TRUE(arrive(0, transport::withdrawn(chunk)));
  EXPECT_EQ(received_, 0);
  EXPECT_EQ(link_->counters().chunksDuplicate, 0u);
  EXPECT_FALSE(arrive(0, chunk)) << "its number has been used";
  EXPECT_TRUE(arrive(1, chunk));
  EXPECT_EQ(received_, 1);
}

TEST_F(HostilePeerTest, AHeaderThatNobodyCheckedDoesNoHarm) {
  // A rail with late writes does not ask before the payload lands.
  const auto slot = receive(200 * kChunk);
  link_->onChunkArrived(0, {.messageLength = kChunk * 2, .slot = slot, .length = kChunk}, now_);
  link_->onChunkArrived(
      1, {.offset = 199 * kChunk, .messageLength = 200 * kChunk, .slot = slot, .length = kChunk},
      now_);
  EXPECT_TRUE(fenced_.contains(1));
  link_->onChunkArrived(0, {.sequence = 1000, .slot = 77}, now_);
  EXPECT_TRUE(fenced_.contains(0));
  EXPECT_EQ(received_, 0);
}

TEST_F(HostilePeerTest, ARepeatedChunkCountsOnce) {
  const auto slot = receive(2 * kChunk);
  const ChunkHeader chunk{.messageLength = 2 * kChunk, .slot = slot, .length = kChunk};
  link_->onChunkArrived(0, chunk, now_);
  link_->onChunkArrived(0, chunk, now_);  // the same again
  link_->onChunkArrived(1, chunk, now_);  // sent again over another rail
  EXPECT_EQ(received_, 0);
  EXPECT_EQ(link_->counters().chunksArrived, 1u);
  EXPECT_EQ(link_->counters().chunksDuplicate, 2u);
}

TEST_F(HostilePeerTest, GrantsThatNobodyWantsAreBounded) {
  GrantRecord grant;
  for (; grant.key.sequence < Link::kMostEarlyGrants; ++grant.key.sequence) {
    record(RecordType::kGrant, bytesOf(grant));
  }
  EXPECT_TRUE(error_.ok()) << error_.message();
  record(RecordType::kGrant, bytesOf(grant));
  EXPECT_FALSE(error_.ok());
  EXPECT_NE(error_.message().find("rank 0"), std::string::npos) << error_.message();
}

TEST_F(HostilePeerTest, GrantsInOneRecordAreBoundedToo) {
  GrantsRecord grants{.first = {1, 0, 0}, .count = GrantsRecord::kMost};
  for (std::uint32_t i = 0; i < (1u << 17) && error_.ok(); ++i) {
    grants.first.sequence = i * GrantsRecord::kMost;
    record(RecordType::kGrants, bytesOf(grants));
  }
  EXPECT_FALSE(error_.ok());
  EXPECT_NE(error_.message().find("rank 0"), std::string::npos) << error_.message();
}

TEST_F(HostilePeerTest, ReceiptsForWhatWasNeverSentAreIgnored) {
  std::vector<std::byte> data(kAlone);
  link_->postSend({1, 0, 0}, data.data(), kAlone, 1, now_);
  const GrantRecord grant{.key = {1, 0, 0}, .capacity = kAlone};
  record(RecordType::kGrant, bytesOf(grant));
  Datagram lie;
  lie.header.control = {.base = 1'000'000};
  lie.rails = {RailReceipt::of(1, {.base = 1'000'000}), RailReceipt::of(1, {})};
  link_->onDatagram(2, lie, now_);
  EXPECT_EQ(sent_, 0);
  lie.rails[0] = RailReceipt::of(7, {.base = 1});  // of another connection
  link_->onDatagram(2, lie, now_);
  EXPECT_EQ(sent_, 0);
  lie.rails[0] = RailReceipt::of(1, {.base = 0xffff'ffff});  // before the first one
  link_->onDatagram(2, lie, now_);
  EXPECT_EQ(sent_, 0);
  lie.rails[0] = RailReceipt::of(1, {.base = 1});
  link_->onDatagram(2, lie, now_);
  EXPECT_EQ(sent_, 1);
}

TEST_F(HostilePeerTest, AGrantCountsAsUsedOnceWhenItsEmptyMessageIsSaidToBeTooLong) {
  LinkOptions options;
  options.rails = 2;
  options.smallMessage = 1000;  // so that grants wait for others while the peer has some in hand
  link_ = std::make_unique<Link>(
      Link::Identity{.self = 1, .peer = 0, .name = "rank 0", .connects = false}, options,
      static_cast<LinkIo&>(*this), now_);
  for (int rail = 0; rail < 2; ++rail) link_->onRailOpened(rail, 1, now_);
  const auto post = [&](std::uint32_t message) {
    link_->postReceive({1, message, 0}, region_.data(), 0, {}, message, now_);
  };
  const auto pass = [&](Duration time) {
    now_ += time;
    link_->flush(now_);
  };
  for (std::uint32_t message = 0; message < 2; ++message) {
    post(message);
    pass(1ms);
  }
  ASSERT_EQ(grants_.size(), 2U) << "the peer has two in hand";

  const ChunkHeader header{.messageLength = 0, .slot = 0, .length = 0};
  ASSERT_TRUE(link_->place(0, header, now_).ok());  // uses one, and does not complete
  const TooLongRecord lie{.key = {1, 0, 0}, .length = 1, .slot = 0};
  record(RecordType::kTooLong, bytesOf(lie));
  pass(1ms);
  ASSERT_EQ(receivesFailed_, 1);
  ASSERT_EQ(grants_.size(), 2U);

  post(2);
  pass(0ms);
  EXPECT_EQ(grants_.size(), 2U) << "with one in hand the next waits; with none it goes at once";
  pass(1ms);
  EXPECT_EQ(grants_.size(), 3U);
}

TEST_F(HostilePeerTest, AnAttemptToConnectIsTakenOnce) {
  LinkOptions options;
  options.rails = 1;
  link_ = std::make_unique<Link>(
      Link::Identity{.self = 1, .peer = 0, .name = "rank 0", .connects = false}, options,
      static_cast<LinkIo&>(*this), now_);
  EXPECT_FALSE(link_->onHello(0, 1, 0, now_)) << "attempts are numbered from 1";
  EXPECT_TRUE(link_->onHello(0, 1, 2, now_));
  EXPECT_FALSE(link_->onHello(0, 1, 2, now_)) << "the same again";
  EXPECT_FALSE(link_->onHello(0, 1, 1, now_)) << "an earlier one";
  link_->onRailOpened(0, 1, now_);
  EXPECT_FALSE(link_->onHello(0, 1, 2, now_));
  EXPECT_TRUE(link_->railUp(0)) << "a rail is not given up for an old attempt";
  EXPECT_TRUE(fenced_.empty());
  EXPECT_FALSE(link_->onHello(0, 1, 3, now_));
  EXPECT_FALSE(link_->railUp(0)) << "the other end has lost that connection";
}

TEST_F(HostilePeerTest, WordsAboutRailsThatDoNotExistAreIgnored) {
  for (const std::uint32_t rail : {2u, 77u, 0xffffffffu}) {
    const RailRecord word{.rail = rail, .epoch = 1, .held = {}};
    record(RecordType::kRailFailed, bytesOf(word));
    record(RecordType::kRailFenced, bytesOf(word));
  }
  for (const std::uint32_t epoch : {0u, 77u}) {
    const RailRecord word{.rail = 0, .epoch = epoch, .held = {}};
    record(RecordType::kRailFenced, bytesOf(word));
  }
  record(static_cast<RecordType>(99), {});
  EXPECT_TRUE(fenced_.empty());
  EXPECT_TRUE(error_.ok());
  EXPECT_TRUE(link_->railUp(0) && link_->railUp(1));
}

}  // namespace
}  // namespace faultline::channel
