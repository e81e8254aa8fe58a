#include "resilient_ccl/transport/shm/shm_rail.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/system_calls.h"
#include "resilient_ccl/transport/shm/local_socket.h"
#include "tests/unit/transport/connected_pair.h"

// What only a rail through shared memory does: sleep and wake, datagrams, ends of processes, and
// memory that is not what it should be. The rest is in framed_rail_test.cc.

namespace faultline::transport::shm {
namespace {

constexpr std::uint32_t kPiece = 64 << 10;

/// One end, driven as a fabric does.
class End : private RailSink, private DatagramSink {
 public:
  explicit End(UniqueFd connection, std::size_t regionBytes = 0)
      : region(regionBytes),
        rail(0, std::move(connection), static_cast<RailSink&>(*this),
             static_cast<DatagramSink&>(*this)) {}

  void submit(std::uint64_t sequence, const std::byte* data, std::uint32_t length = kPiece) {
    rail.submit({.sequence = sequence,
                 .offset = sequence * kPiece,
                 .messageLength = 1 << 30,
                 .slot = 5,
                 .length = length},
                data, {});
  }
  bool send(const std::string& text) {  // in pieces
    const std::size_t half = text.size() / 2;
    auto* const begin = const_cast<char*>(text.data());
    const std::array<iovec, 2> pieces{{{begin, half}, {begin + half, text.size() - half}}};
    return rail.sendDatagram(pieces);
  }
  /// One round of a progress thread; false: nothing woke it for very long.
  bool poll() {
    rail.transmit();
    if (!rail.collect()) {
      rail.arm();
      if (!rail.collect()) {
        pollfd waiting{rail.fd(), POLLIN, 0};
        constexpr int kLongMs = 20'000;  // a bell that does not ring is seen
        if (::poll(&waiting, 1, kLongMs) == 0) return false;
      }
      rail.disarm();
    }
    rail.readConnection();
    rail.collect();
    return true;
  }
  bool pollUntil(const std::function<bool()>& done) {
    while (!done()) {
      if (!poll()) return false;
    }
    return true;
  }

  std::vector<std::byte> region;
  std::vector<ChunkHeader> arrived;
  std::vector<std::string> datagrams;
  std::vector<Status> failures;
  ShmRail rail;

 private:
  Result<std::byte*> place(int, const ChunkHeader& header) override {
    return region.data() + (header.offset % region.size());
  }
  void chunkArrived(int, const ChunkHeader& header) override { arrived.push_back(header); }
  void railFailed(int, const Status& why) override { failures.push_back(why); }
  void datagramArrived(std::span<const std::byte> datagram) override {
    datagrams.emplace_back(reinterpret_cast<const char*>(datagram.data()), datagram.size());
  }
};

/// Whether this process has memory of a rail mapped.
bool mapped() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("faultline-rail") != std::string::npos) return true;
  }
  return false;
}

class ShmRailTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto ends = connectedPair();
    left_ = std::make_unique<End>(std::move(ends[0]), kPiece);
    right_ = std::make_unique<End>(std::move(ends[1]), kPiece);
    ASSERT_TRUE(left_->rail.offer().ok());
  }
  void join() { right_->rail.readConnection(); }

  std::unique_ptr<End> left_, right_;
};

TEST_F(ShmRailTest, BothSleepWhileTheyWaitForEachOtherAndAreWoken) {
  constexpr std::uint64_t kRounds = 2000;
  const std::vector<std::byte> data(kPiece, std::byte{3});
  // One chunk goes to and fro: each end has nothing to do most of the time.
  std::jthread other([&] {
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      ASSERT_TRUE(right_->pollUntil([&] { return right_->arrived.size() > i; }));
      right_->submit(i, data.data(), 100);
      right_->rail.transmit();
    }
  });
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    left_->submit(i, data.data(), 100);
    ASSERT_TRUE(left_->pollUntil([&] { return left_->arrived.size() > i; }));
  }
}

TEST_F(ShmRailTest, AWriterSleepsUntilASlowReaderMakesRoom) {
  constexpr std::uint64_t kMany = 300;  // 75 times what the ring holds
  const std::vector<std::byte> data(kPiece, std::byte{3});
  std::jthread reader([&] {
    for (std::uint64_t i = 0; i < kMany; i += 20) {
      std::this_thread::sleep_for(1ms);
      ASSERT_TRUE(right_->pollUntil([&] { return right_->arrived.size() >= i; }));
    }
    ASSERT_TRUE(right_->pollUntil([&] { return right_->arrived.size() == kMany; }));
    ASSERT_TRUE(right_->send("enough"));
    right_->rail.transmit();
  });
  for (std::uint64_t i = 0; i < kMany; ++i) left_->submit(i, data.data());
  EXPECT_TRUE(left_->pollUntil([&] { return !left_->datagrams.empty(); }));
  reader.join();
  EXPECT_FALSE(left_->rail.canWrite());
  EXPECT_EQ(right_->arrived.size(), kMany);
}

TEST_F(ShmRailTest, EndsThatAreAwakeMakeNoSystemCalls) {
  join();
  const std::vector<std::byte> data(kPiece, std::byte{3});
  const std::uint64_t before = systemCallsMade();
  for (std::uint64_t i = 0; i < 100; ++i) {
    left_->submit(i, data.data());
    left_->rail.transmit();
    right_->rail.collect();
  }
  EXPECT_EQ(right_->arrived.size(), 100u);
  EXPECT_EQ(systemCallsMade(), before);
}

TEST_F(ShmRailTest, WhatIsSubmittedBeforeTheMemoryIsThereIsSentThen) {
  const std::vector<std::byte> data(kPiece, std::byte{3});
  right_->submit(0, data.data());
  right_->rail.transmit();
  EXPECT_FALSE(right_->send("too early"));
  ASSERT_TRUE(right_->poll());
  right_->rail.transmit();
  left_->rail.collect();
  EXPECT_EQ(left_->arrived.size(), 1u);
}

TEST_F(ShmRailTest, DatagramsDoNotWaitBehindPayload) {
  join();
  const std::vector<std::byte> data(kPiece, std::byte{3});
  for (std::uint64_t i = 0; i < 50; ++i) left_->submit(i, data.data());
  left_->rail.transmit();
  ASSERT_TRUE(left_->rail.wantsWritable()) << "the ring must be full";
  EXPECT_TRUE(left_->send("one"));
  EXPECT_TRUE(left_->send(""));
  EXPECT_TRUE(left_->send(std::string(1400, 'x')));
  right_->rail.collect();
  EXPECT_EQ(right_->datagrams, (std::vector<std::string>{"one", "", std::string(1400, 'x')}));
  EXPECT_LT(right_->arrived.size(), 50u);
}

TEST_F(ShmRailTest, ADatagramWakesWhoSleepsThoughNothingElseIsSent) {
  join();
  left_->rail.collect();
  right_->rail.collect();
  const auto woken = [&] {
    pollfd bell{right_->rail.fd(), POLLIN, 0};
    return ::poll(&bell, 1, 0) == 1;
  };
  right_->rail.arm();
  ASSERT_FALSE(woken());
  EXPECT_TRUE(left_->send("one"));
  EXPECT_TRUE(woken());
}

TEST_F(ShmRailTest, WhereThereIsNoRoomNobodyIsWoken) {
  join();
  const std::vector<std::byte> data(kPiece, std::byte{3});
  for (std::uint64_t i = 0; i < 50; ++i) left_->submit(i, data.data());
  left_->rail.transmit();
  ASSERT_TRUE(left_->rail.wantsWritable()) << "the ring must be full";
  right_->rail.arm();
  left_->rail.transmit();
  pollfd bell{right_->rail.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&bell, 1, 0), 0) << "for nothing";
}

TEST_F(ShmRailTest, AnEndThatHasBeenSeenIsNotLookedForAgain) {
  join();
  left_.reset();
  errno = EINTR;  // of something before
  right_->rail.readConnection();
  const std::uint64_t before = systemCallsMade();
  right_->rail.readConnection();
  EXPECT_EQ(systemCallsMade(), before);
  right_->rail.collect();
  ASSERT_EQ(right_->failures.size(), 1u);
  EXPECT_EQ(right_->failures[0].code(), Code::kUnavailable);
  right_->rail.fence();
  right_->rail.readConnection();
  EXPECT_EQ(systemCallsMade(), before);
  EXPECT_EQ(right_->failures.size(), 1u);
}

TEST_F(ShmRailTest, ADatagramIsSeenWholeOrNotAtAll) {
  join();
  constexpr int kMany = 20'000;
  std::jthread sender([&](const std::stop_token& stop) {
    for (int i = 0; i < kMany && !stop.stop_requested();) i += left_->send(std::to_string(i));
  });
  while (right_->datagrams.size() < kMany && right_->failures.empty()) right_->rail.collect();
  ASSERT_TRUE(right_->failures.empty()) << right_->failures[0].message();
  for (int i = 0; i < kMany; ++i) ASSERT_EQ(right_->datagrams[i], std::to_string(i));
}

TEST_F(ShmRailTest, DatagramsThatDoNotFitAreLostAndNoOthers) {
  join();
  std::vector<std::string> taken;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = std::to_string(i) + std::string(1000, '.');
    if (left_->send(text)) taken.push_back(text);
  }
  EXPECT_LT(taken.size(), 1000u);
  EXPECT_GT(taken.size(), 30u);
  right_->rail.collect();
  EXPECT_EQ(right_->datagrams, taken);
  EXPECT_TRUE(left_->send("there is room again"));
}

TEST_F(ShmRailTest, NothingIsLeftOfTheMemoryAfterAFence) {
  join();
  ASSERT_TRUE(mapped());
  left_->rail.fence();
  right_->rail.fence();
  EXPECT_FALSE(mapped());
}

TEST(ShmRailProcessTest, AKilledProcessIsAnEndBehindAllThatItHadWritten) {
  auto ends = connectedPair();
  const std::vector<std::byte> data(1 << 20, std::byte{3});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ends[1].reset();
    End self(std::move(ends[0]), kPiece);
    if (!self.rail.offer().ok()) _exit(1);
    // One whole chunk, and one of which the ring takes a part.
    self.submit(0, data.data());
    self.submit(1, data.data(), 1 << 20);
    self.rail.transmit();
    raise(SIGKILL);
  }
  ends[0].reset();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  End self(std::move(ends[1]), 1 << 20);
  ASSERT_TRUE(self.pollUntil([&] { return !self.failures.empty(); }));
  EXPECT_EQ(self.failures[0].code(), Code::kUnavailable);
  ASSERT_EQ(self.arrived.size(), 1u);
  self.rail.fence();
  EXPECT_FALSE(mapped());
  EXPECT_EQ(self.failures.size(), 1u);
}

/// Fails with `code` on what a hostile process puts on the connection.
void expectRefused(const std::function<void(int)>& speak, Code code) {
  auto ends = connectedPair();
  End self(std::move(ends[1]), kPiece);
  speak(ends[0].get());
  ASSERT_TRUE(self.pollUntil([&] { return !self.failures.empty(); }));
  EXPECT_EQ(self.failures[0].code(), code);
}

TEST(ShmRailHostileTest, WhoSharesNoMemoryOfARailIsRefused) {
  expectRefused([](int fd) { ASSERT_EQ(send(fd, "x", 1, 0), 1); }, Code::kInvalidArgument);
  expectRefused([](int fd) { ASSERT_TRUE(sendDescriptor(fd, STDIN_FILENO).ok()); },
                Code::kInvalidArgument);
  expectRefused([](int fd) { shutdown(fd, SHUT_WR); }, Code::kUnavailable);
  // The right size, but its maker could cut it.
  auto honest = Segment::create();
  ASSERT_TRUE(honest.ok());
  const off_t size = lseek(honest->fd(), 0, SEEK_END);
  const UniqueFd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), size), 0);
  expectRefused([&](int fd) { ASSERT_TRUE(sendDescriptor(fd, unsealed.get()).ok()); },
                Code::kInvalidArgument);
}

class ShmRailLiarTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto ends = connectedPair();
    liar_ = std::move(ends[0]);
    self_ = std::make_unique<End>(std::move(ends[1]), kPiece);
    auto segment = Segment::create();
    ASSERT_TRUE(segment.ok());
    segment_.emplace(std::move(*segment));
    ASSERT_TRUE(sendDescriptor(liar_.get(), segment_->fd()).ok());
    self_->rail.readConnection();
  }
  Segment::Direction& said() { return segment_->shared().directions[0]; }
  Segment::Direction& heard() { return segment_->shared().directions[1]; }
  void expectFailed() {
    self_->rail.collect();
    ASSERT_EQ(self_->failures.size(), 1u);
    EXPECT_EQ(self_->failures[0].code(), Code::kInvalidArgument);
    self_->rail.fence();
    EXPECT_TRUE(self_->arrived.empty());
    EXPECT_TRUE(self_->datagrams.empty());
  }

  UniqueFd liar_;
  std::optional<Segment> segment_;
  std::unique_ptr<End> self_;
};

TEST_F(ShmRailLiarTest, MorePayloadThanTheRingHolds) {
  said().payload.written.store(Segment::kPayloadRing + 1);
  expectFailed();
}

TEST_F(ShmRailLiarTest, MoreTakenThanWasWritten) {
  std::byte byte{};
  self_->submit(0, &byte, 1);
  heard().payload.taken.store(1 << 20);
  self_->rail.transmit();
  expectFailed();
}

TEST_F(ShmRailLiarTest, ADatagramLongerThanWhatIsThere) {
  const std::uint32_t length = 100;
  std::memcpy(segment_->datagrams(0).data(), &length, sizeof(length));
  said().datagrams.written.store(50);
  expectFailed();
}

TEST_F(ShmRailLiarTest, ADatagramLongerThanAny) {
  const std::uint32_t length = 60'000;
  std::memcpy(segment_->datagrams(0).data(), &length, sizeof(length));
  said().datagrams.written.store(Segment::kDatagramRing);
  expectFailed();
}

TEST_F(ShmRailLiarTest, LessThanALength) {
  said().datagrams.written.store(2);
  expectFailed();
}

TEST(LocalSocketTest, ProcessesFindEachOtherByANameThatNobodyChose) {
  auto listener = openLocalListener();
  ASSERT_TRUE(listener.ok());
  const auto name = localName(listener->get());
  ASSERT_TRUE(name.ok());
  ASSERT_FALSE(name->empty());
  EXPECT_EQ((*name)[0], '\0') << "no file";
  EXPECT_TRUE(connectLocally(*name).ok());
  EXPECT_GE(UniqueFd(accept(listener->get(), nullptr, nullptr)).get(), 0);
  listener->reset();
  EXPECT_FALSE(connectLocally(*name).ok());
}

}  // namespace
}  // namespace faultline::transport::shm
