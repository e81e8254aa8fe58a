#include "resilient_ccl/fabric/fabric.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <span>
#include <thread>

#include "loopback.h"
#include "resilient_ccl/fabric/handshake.h"
#include "resilient_ccl/transport/tcp/io_thread.h"

// Two fabrics in one process, over loopback: the same channel over real sockets.

namespace faultline::fabric {
namespace {

struct Side : FabricClient {
  void sendDone(int, std::uint64_t) override { ++sent; }
  void receiveDone(int, std::uint64_t, Bytes length) override { received.push_back(length); }
  void sendFailed(int, std::uint64_t, const Status& why) override { sendsFailed.push_back(why); }
  void receiveFailed(int, std::uint64_t, const Status& why) override {
    receivesFailed.push_back(why);
  }
  void failedOver(int, const channel::Failover& failover) override {
    failovers.push_back(failover);
  }
  void failedBack(int, int, TimePoint) override { ++failbacks; }
  void explained(int, int, channel::Cause, channel::Where) override {}
  void linkFailed(int, const Status& why) override { error = why; }

  std::unique_ptr<Fabric> fabric;
  int sent = 0;
  std::vector<Bytes> received;
  std::vector<channel::Failover> failovers;
  int failbacks = 0;
  std::vector<Status> sendsFailed, receivesFailed;
  Status error;
};

struct Variant {
  channel::Policy policy;
  int ioThreads;
  bool oneNode = false;       // shared memory instead of rails
  bool moversChange = false;  // between I/O threads and whoever polls
  int sharedThreads = 0;      // of the process, from the third on its own
  friend void PrintTo(const Variant& variant, std::ostream* out) {
    *out << variant.ioThreads + variant.sharedThreads
         << " I/O threads, one node: " << variant.oneNode;
  }
};

class FabricTest : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override { start(2); }

  void start(int rails) {
    FabricOptions options;
    options.jobKey = jobKey_;
    options.nics.assign(rails, {.device = "", .address = kLoopback});
    options.managementAddress = kLoopback;
    options.link.policy = GetParam().policy;
    options.ioThreads = GetParam().ioThreads;
    for (int i = 0; i < GetParam().sharedThreads; ++i) {
      auto thread = transport::tcp::IoThread::start();
      ASSERT_TRUE(thread.ok()) << thread.status().message();
      options.sharedIoThreads.push_back(std::move(*thread));
    }
    options.firstIoThread = 2;
    if (GetParam().oneNode) options.host = "here";
    std::vector<ProcessAddress> addresses;
    for (int i = 0; i < 2; ++i) {
      options.self = i;
      auto created = Fabric::create(options, sides_[i]);
      ASSERT_TRUE(created.ok()) << created.status().message();
      sides_[i].fabric = std::move(*created);
      // As over the bootstrap network.
      const auto address = ProcessAddress::parse(sides_[i].fabric->address().serialize());
      ASSERT_TRUE(address.ok());
      addresses.push_back(*address);
    }
    for (auto& side : sides_) ASSERT_TRUE(side.fabric->connect(addresses).ok());
    ASSERT_TRUE(pollUntil(
        [&] { return sides_[0].fabric->allRailsUp() && sides_[1].fabric->allRailsUp(); }));
  }

  bool pollUntil(const std::function<bool()>& done) {
    const TimePoint deadline = now() + 20s;
    while (!done()) {
      if (now() > deadline) return false;
      for (auto& side : sides_) {
        if (GetParam().moversChange) {
          using enum transport::Mover;
          constexpr std::array kMovers{kOwner, kOwner, kThread, kCommonThread, kThread};
          side.fabric->setMover(kMovers[++polls_ % kMovers.size()]);
        }
        EXPECT_TRUE(side.fabric->poll(200us).ok());
      }
    }
    return true;
  }

  void pollTimes(int times) {
    pollUntil([&] { return times-- <= 0; });
  }
  /// One side alone is polled.
  bool pollSideUntil(int side, const std::function<bool()>& done) {
    for (const TimePoint deadline = now() + 20s; !done();) {
      if (now() > deadline) return false;
      EXPECT_TRUE(sides_[side].fabric->poll(200us).ok());
    }
    return true;
  }

  /// Memory for messages. It outlives the fabrics: an I/O thread may be about to return from the
  /// sendmsg whose bytes have been acknowledged, and the address sanitizer looks at them then.
  std::vector<std::byte>& buffer(std::size_t size, std::byte value = {}) {
    return buffers_.emplace_back(size, value);
  }

  const auth::JobKey jobKey_ = auth::JobKey::random();

 private:
  std::deque<std::vector<std::byte>> buffers_;
  unsigned polls_ = 0;

 protected:
  Side sides_[2];
};

TEST_P(FabricTest, MessagesOfAnySizeCrossInBothDirections) {
  const std::vector<Bytes> sizes{0, 1, 65535, 65536, 200001, 4 << 20};
  std::vector<std::span<std::byte>> source, target;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (int from = 0; from < 2; ++from) {
      auto& data = source.emplace_back(buffer(sizes[i]));
      for (std::size_t k = 0; k < data.size(); ++k)
        data[k] = static_cast<std::byte>(k * 7 + i + from);
      target.emplace_back(buffer(sizes[i]));
    }
  }
  for (std::size_t i = 0; i < source.size(); ++i) {
    const int from = i % 2;
    const channel::MessageKey key{
        .communicator = 1, .sequence = static_cast<std::uint32_t>(i), .stream = 0};
    sides_[from].fabric->postSend(1 - from, key, source[i].data(), source[i].size(), i);
    sides_[1 - from].fabric->postReceive(from, key, target[i].data(), target[i].size(), i);
  }
  ASSERT_TRUE(pollUntil([&] {
    return sides_[0].received.size() + sides_[1].received.size() == source.size() &&
           sides_[0].sent + sides_[1].sent == static_cast<int>(source.size());
  }));
  for (std::size_t i = 0; i < source.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(source[i], target[i])) << source[i].size() << " bytes";
  EXPECT_EQ(sides_[0].fabric->counters().failovers, 0u);
}

TEST_P(FabricTest, AbortReachesThePeerWithItsReason) {
  std::vector<std::byte>& data = buffer(10);
  sides_[1].fabric->postReceive(0, {1, 1, 1}, data.data(), 10, 1);
  sides_[0].fabric->abort("rank 0 ran out of patience");
  ASSERT_TRUE(pollUntil([&] { return !sides_[1].error.ok(); }));
  EXPECT_EQ(sides_[1].error.code(), Code::kAborted);
  EXPECT_EQ(sides_[1].error.message(), "rank 0 ran out of patience");
}

/// Messages under way from side 0 to side 1 in a stream that is going to be closed.
class ClosedStreamTest : public FabricTest {
 protected:
  static constexpr Bytes kLength = 1 << 20;
  static constexpr std::uint32_t kMessages = 8;
  static constexpr channel::StreamKey kStream{.communicator = 1, .stream = 7};

  void begin() {
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      const channel::MessageKey key{kStream.communicator, i, kStream.stream};
      sides_[0].fabric->postSend(1, key, source_.data() + i * kLength, kLength, i);
      sides_[1].fabric->postReceive(0, key, target_.data() + i * kLength, kLength, i);
    }
    ASSERT_TRUE(pollUntil([&] { return sides_[1].fabric->counters().bytesArrived > 0; }));
  }
  /// Both ends know what became of each, and the rails carry on: what was under way in the stream
  /// is through when the next message is.
  void awaitTheEnd() {
    ASSERT_TRUE(pollUntil([&] {
      return sides_[0].sent + sides_[0].sendsFailed.size() == kMessages &&
             sides_[1].received.size() + sides_[1].receivesFailed.size() == kMessages;
    }));
    EXPECT_FALSE(sides_[0].sendsFailed.empty());
    EXPECT_FALSE(sides_[1].receivesFailed.empty());
    const std::size_t received = sides_[1].received.size();
    sides_[0].fabric->postSend(1, {2, 0, 0}, next_.data(), kLength, 0);
    sides_[1].fabric->postReceive(0, {2, 0, 0}, later_.data(), kLength, 0);
    ASSERT_TRUE(pollUntil([&] { return sides_[1].received.size() > received; }));
    EXPECT_EQ(next_, later_);
    for (const Side& side : sides_) {
      EXPECT_TRUE(side.error.ok());
      EXPECT_EQ(side.fabric->counters().failovers, 0u);
    }
  }

  static constexpr std::byte kSent{1}, kAfterwards{3};
  std::vector<std::byte>& source_ = buffer(kMessages * kLength, kSent);
  std::vector<std::byte>& target_ = buffer(kMessages * kLength);
  std::vector<std::byte>& next_ = buffer(kLength, std::byte{9});
  std::vector<std::byte>& later_ = buffer(kLength);
};

TEST_P(ClosedStreamTest, NothingReadsWhatWasToBeSent) {
  begin();
  EXPECT_TRUE(sides_[0].fabric->closeSends(1, kStream));
  std::ranges::fill(source_, kAfterwards);
  awaitTheEnd();
  EXPECT_TRUE(sides_[1].fabric->closeReceives(0, kStream));
  EXPECT_EQ(std::ranges::count(target_, kAfterwards), 0);
}

TEST_P(ClosedStreamTest, NothingWritesWhereItWasToBeReceived) {
  begin();
  EXPECT_TRUE(sides_[1].fabric->closeReceives(0, kStream));
  std::ranges::fill(target_, kAfterwards);
  awaitTheEnd();
  EXPECT_TRUE(sides_[0].fabric->closeSends(1, kStream));
  EXPECT_EQ(std::ranges::count(target_, kAfterwards), kMessages * kLength);
}

TEST_P(FabricTest, AMessageThatIsTooLongFailsAtBothEndsAndTheLinkGoesOn) {
  const std::vector<std::byte>& data = buffer(1000, std::byte{1});
  std::vector<std::byte>& target = buffer(1000);
  for (std::uint32_t i = 0; i < 2; ++i) {
    sides_[0].fabric->postSend(1, {1, i, 0}, data.data(), 1000, i);
    sides_[1].fabric->postReceive(0, {1, i, 0}, target.data(), i == 0 ? 999 : 1000, i);
  }
  ASSERT_TRUE(pollUntil([&] {
    return sides_[0].sendsFailed.size() == 1 && sides_[1].receivesFailed.size() == 1 &&
           sides_[0].sent == 1 && sides_[1].received.size() == 1;
  }));
  EXPECT_EQ(sides_[0].sendsFailed[0].code(), Code::kInvalidArgument);
  EXPECT_NE(sides_[1].receivesFailed[0].message().find("1000 bytes"), std::string::npos);
  EXPECT_TRUE(sides_[0].error.ok() && sides_[1].error.ok());
}

TEST_P(FabricTest, StrangersAndGarbageDoNothing) {
  using namespace transport::tcp;
  const auto& address = sides_[0].fabric->address();
  auto stray = openUdp({kLoopback, "", 0});
  ASSERT_TRUE(stray.ok());
  std::string garbage(1300, 'x');
  for (const auto& to : {address.management, address.rails[0].control}) {
    const sockaddr_in place = to.toSockaddr();
    for (const std::size_t size : {std::size_t{0}, std::size_t{3}, garbage.size()}) {
      sendto(stray->get(), garbage.data(), size, 0, reinterpret_cast<const sockaddr*>(&place),
             sizeof(place));
    }
  }
  // A hello that nobody has signed, half a hello, and silence on the rail's listener.
  std::vector<UniqueFd> sockets;
  for (const std::size_t size : {sizeof(SignedHello), sizeof(SignedHello) / 2, std::size_t{0}}) {
    auto socket = beginConnect({kLoopback, "", 0}, address.rails[1].data);
    ASSERT_TRUE(socket.ok());
    const SignedHello hello{.hello = {.source = 1, .destination = 0, .rail = 1, .epoch = 2}};
    ASSERT_TRUE(pollUntil([&] { return connectOutcome(socket->get()).ok(); }));
    ASSERT_TRUE(sendAll(socket->get(), &hello, size, now() + 1s).ok());
    sockets.push_back(std::move(*socket));
  }
  const std::vector<std::byte>& data = buffer(300000, std::byte{3});
  std::vector<std::byte>& target = buffer(data.size());
  sides_[1].fabric->postSend(0, {1, 1, 1}, data.data(), data.size(), 1);
  sides_[0].fabric->postReceive(1, {1, 1, 1}, target.data(), target.size(), 1);
  ASSERT_TRUE(pollUntil([&] { return sides_[1].sent == 1 && sides_[0].received.size() == 1; }));
  EXPECT_EQ(data, target);
  EXPECT_TRUE(sides_[0].error.ok());
  const FabricCounters counters = sides_[0].fabric->counters();
  EXPECT_EQ(counters.failovers, 0u);
  EXPECT_EQ(counters.datagramsRejected, 6u);
  EXPECT_EQ(counters.connectionsRejected, 1u);
}

/// The only thing that a process that sends no messages sends over its rails.
class RoomWordTest : public FabricTest {
 protected:
  /// Bytes that have come over the rails of side 0 and that it has not read.
  Bytes unread() const {
    Bytes sum = 0;
    for (int fd = 0; fd < kMostFiles; ++fd) {
      const auto here = endpoint(::getsockname, fd), there = endpoint(::getpeername, fd);
      if (!here || !there) continue;
      for (std::size_t rail = 0; rail < 2; ++rail) {
        if (*here != sides_[0].fabric->address().rails[rail].data.port &&
            *there != sides_[1].fabric->address().rails[rail].data.port)
          continue;
        int count = 0;
        EXPECT_EQ(ioctl(fd, FIONREAD, &count), 0);
        sum += count;
      }
    }
    return sum;
  }
  void pollFor(Side& side, Duration time) {
    for (const TimePoint end = now() + time; now() < end;) {
      EXPECT_TRUE(side.fabric->poll(200us).ok());
    }
  }

 private:
  static constexpr int kMostFiles = 1024;
  /// The port, where it is a stream.
  static std::optional<std::uint16_t> endpoint(int (*name)(int, sockaddr*, socklen_t*), int fd) {
    int type = 0;
    sockaddr_in address{};
    socklen_t size = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) return {};
    size = sizeof address;
    if (name(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    return ntohs(address.sin_port);
  }
};

TEST_P(RoomWordTest, ComesFromWhoeverIsHeardAgainWhileItsRailIsTried) {
  const std::vector<std::byte>& data = buffer(1 << 20, std::byte{5});
  std::vector<std::byte>& target = buffer(data.size());
  bool told = false;
  std::uint32_t round = 0;
  EXPECT_TRUE(pollUntil([&] {
    sides_[0].fabric->postSend(1, {1, round, 0}, data.data(), data.size(), 1);
    sides_[1].fabric->postReceive(0, {1, round, 0}, target.data(), target.size(), 1);
    pollFor(sides_[1], 10ms);   // its grant goes
    pollFor(sides_[0], 100ms);  // nobody answers, so that its rails are tried
    pollFor(sides_[1], 10ms);
    told = unread() > 0;
    ++round;
    EXPECT_TRUE(pollUntil([&] { return sides_[1].received.size() == round; }));
    return told || HasFailure();
  }));
  EXPECT_TRUE(told);
  EXPECT_GT(sides_[0].fabric->counters().suspicions, 0u);
}

/// Of I/O threads, and of whoever polls in their place.
class MoverTest : public RoomWordTest {};

TEST_P(MoverTest, OnlyThePollsOfAnOwnerThatMovesRead) {
  constexpr Bytes kLength = 40'000;  // what a socket takes at once
  const std::vector<std::byte>& data = buffer(kLength, std::byte{5});
  std::vector<std::byte>& target = buffer(kLength);
  sides_[0].fabric->setMover(transport::Mover::kOwner);
  sides_[0].fabric->postReceive(1, {1, 0, 0}, target.data(), kLength, 1);
  sides_[0].fabric->push();
  sides_[1].fabric->postSend(0, {1, 0, 0}, data.data(), kLength, 1);
  ASSERT_TRUE(pollSideUntil(1, [&] { return unread() >= kLength; }));
  pollFor(sides_[1], 20ms);  // a thread that still read would have
  EXPECT_GE(unread(), kLength);
  sides_[0].fabric->setMover(transport::Mover::kThread);
  EXPECT_TRUE(pollSideUntil(1, [&] { return unread() == 0; })) << "now it is the thread's turn";
  EXPECT_TRUE(pollUntil([&] { return sides_[0].received.size() == 1; }));
  EXPECT_EQ(data, target);
}

TEST_P(FabricTest, WhatIsPostedBetweenTwoPollsLeavesAtOnce) {
  constexpr int kRounds = 20;
  const std::vector<std::byte>& data = buffer(10);
  std::vector<std::byte>& target = buffer(10);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const channel::MessageKey key{.communicator = 1, .sequence = round, .stream = 0};
    sides_[1].fabric->postReceive(0, key, target.data(), 10, 1);
    for (int i = 0; i < 10; ++i) pollUntil([&, n = 0]() mutable { return n++ > 0; });
    sides_[0].fabric->postSend(1, key, data.data(), 10, 1);  // the grant is there
    std::thread other([&] {
      for (const TimePoint end = now() + 20s; sides_[1].received.size() <= round && now() < end;) {
        EXPECT_TRUE(sides_[1].fabric->poll(100ms).ok());
      }
    });
    for (const TimePoint end = now() + 20s;
         sides_[0].sent <= static_cast<int>(round) && now() < end;) {
      EXPECT_TRUE(sides_[0].fabric->poll(100ms).ok());
    }
    other.join();
    ASSERT_EQ(sides_[0].sent, static_cast<int>(round) + 1);
  }
  // Left lying until the sleep ends, each would have become suspect.
  EXPECT_LT(sides_[0].fabric->counters().suspicions, kRounds / 2u);
}

TEST_P(FabricTest, WhatIsPushedLeavesAndNothingThatHasComeIsLookedAt) {
  const std::vector<std::byte>& data = buffer(100'000, std::byte{7});
  std::vector<std::byte>& target = buffer(data.size());
  std::vector<std::byte>& back = buffer(10);
  const auto key = [](std::uint32_t number) {
    return channel::MessageKey{.communicator = 1, .sequence = number, .stream = 0};
  };
  sides_[1].fabric->postReceive(0, key(0), target.data(), target.size(), 1);
  sides_[0].fabric->postReceive(1, key(1), back.data(), back.size(), 2);
  for (int i = 0; i < 10; ++i) pollUntil([&, n = 0]() mutable { return n++ > 0; });
  sides_[1].fabric->postSend(0, key(1), data.data(), back.size(), 2);
  sides_[0].fabric->postSend(1, key(0), data.data(), data.size(), 1);  // the grant is there
  const TimePoint end = now() + 20s;
  while (sides_[1].received.empty() && now() < end) {
    sides_[0].fabric->push();
    EXPECT_TRUE(sides_[1].fabric->poll(200us).ok());
  }
  EXPECT_EQ(sides_[1].received.size(), 1u);
  EXPECT_TRUE(std::ranges::equal(data, target));
  EXPECT_TRUE(sides_[0].received.empty());
  EXPECT_EQ(sides_[0].sent, 0) << "its acknowledgement has not been read";
  EXPECT_TRUE(pollUntil([&] { return sides_[0].received.size() == 1 && sides_[0].sent == 1; }));
}

TEST_P(FabricTest, AReceiveThatIsPushedIsKnownToWhoWaitsForIt) {
  const std::vector<std::byte>& data = buffer(1 << 20, std::byte{7});
  std::vector<std::byte>& target = buffer(data.size());
  const channel::MessageKey key{.communicator = 1, .sequence = 0, .stream = 0};
  sides_[0].fabric->postSend(1, key, data.data(), data.size(), 1);
  pollTimes(10);
  const auto sent = [&] {
    const std::vector<Bytes> byRail = sides_[0].fabric->bytesSentByRail(1);
    return std::accumulate(byRail.begin(), byRail.end(), Bytes{0});
  };
  ASSERT_EQ(sent(), 0) << "nobody wants it";
  sides_[1].fabric->postReceive(0, key, target.data(), target.size(), 1);
  sides_[1].fabric->push();  // and then its owner is busy elsewhere
  EXPECT_TRUE(pollSideUntil(0, [&] { return sent() > 0; }));
}

TEST_P(FabricTest, AnAbortThatIsPushedIsHeard) {
  sides_[0].fabric->abort("enough");
  sides_[0].fabric->push();
  EXPECT_TRUE(pollSideUntil(1, [&] { return !sides_[1].error.ok(); }));
  EXPECT_EQ(sides_[1].error.code(), Code::kAborted);
}

TEST_P(FabricTest, ALinkThatFailedLeavesNothingToWakeUpFor) {
  sides_[1].fabric->abort("enough");
  ASSERT_TRUE(pollUntil([&] { return !sides_[0].error.ok(); }));
  sides_[1].fabric.reset();  // its sockets close
  int polls = 0;
  for (const TimePoint end = now() + 200ms; now() < end; ++polls) {
    ASSERT_TRUE(sides_[0].fabric->poll(polls % 2 == 0 ? 50ms : Duration::max()).ok());
  }
  EXPECT_LT(polls, 50);  // thousands when it spins
}

const auto kVariants = ::testing::Values(
    Variant{channel::Policy::kPinned, 0}, Variant{channel::Policy::kPull, 0},
    Variant{channel::Policy::kPinned, 1}, Variant{channel::Policy::kPull, 2},
    Variant{channel::Policy::kPinned, 0, true}, Variant{channel::Policy::kPull, 2, true},
    Variant{channel::Policy::kPull, 2, false, true},
    Variant{channel::Policy::kPull, 0, false, true, 4});

std::string variantName(const ::testing::TestParamInfo<Variant>& variant) {
  const bool pull = variant.param.policy == channel::Policy::kPull;
  return fmt::format("{}With{}{}IoThreads{}{}", pull ? "Pull" : "Pinned",
                     variant.param.ioThreads + variant.param.sharedThreads,
                     variant.param.sharedThreads > 0 ? "Shared" : "",
                     variant.param.oneNode ? "OnOneNode" : "",
                     variant.param.moversChange ? "OrTheCaller" : "");
}

INSTANTIATE_TEST_SUITE_P(Policies, FabricTest, kVariants, variantName);
INSTANTIATE_TEST_SUITE_P(Policies, ClosedStreamTest, kVariants, variantName);
INSTANTIATE_TEST_SUITE_P(Policies, RoomWordTest,
                         ::testing::Values(Variant{channel::Policy::kPull, 0}), variantName);
INSTANTIATE_TEST_SUITE_P(Policies, MoverTest, ::testing::Values(Variant{channel::Policy::kPull, 2}),
                         variantName);

TEST(FabricLimitsTest, MoreRailsThanADatagramCanSpeakOfAreRefused) {
  Side side;
  FabricOptions options;
  options.nics.assign(60, {.device = "", .address = kLoopback});
  options.managementAddress = kLoopback;
  const auto created = Fabric::create(options, side);
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.status().code(), Code::kInvalidArgument);
}

TEST(FabricLimitsTest, ANodesNameIsAsLongAsAnAddressHasRoomForAndNoLonger) {
  Side side;
  FabricOptions options;
  options.nics = {{.device = "", .address = kLoopback}};
  options.managementAddress = kLoopback;
  options.host.assign(255, 'h');
  const auto longest = Fabric::create(options, side);
  ASSERT_TRUE(longest.ok()) << longest.status().message();
  const auto read = ProcessAddress::parse((*longest)->address().serialize());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->host, options.host);
  options.host += 'h';
  EXPECT_EQ(Fabric::create(options, side).status().code(), Code::kInvalidArgument);
}

TEST(ProcessAddressTest, WhatIsWrittenIsRead) {
  ProcessAddress address;
  address.host = std::string("node\0 7", 7);
  address.local = std::string("\0abc", 4);
  address.management = {1, 2};
  address.rails = {{{3, 4}, {5, 6}}, {{7, 8}, {9, 10}}};
  const auto read = ProcessAddress::parse(address.serialize());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->host, address.host);
  EXPECT_EQ(read->local, address.local);
  EXPECT_EQ(read->management, address.management);
  ASSERT_EQ(read->rails.size(), 2u);
  EXPECT_EQ(read->rails[1].data, address.rails[1].data);
  EXPECT_EQ(read->rails[1].control, address.rails[1].control);
  const std::string whole = address.serialize();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto cut = ProcessAddress::parse(whole.substr(0, length));
    EXPECT_TRUE(!cut.ok() || cut->rails.size() < address.rails.size());
  }
}

TEST(ProcessAddressTest, NonsenseIsRefused) {
  EXPECT_FALSE(ProcessAddress::parse("").ok());
  EXPECT_FALSE(ProcessAddress::parse("12345").ok());
  EXPECT_FALSE(ProcessAddress::parse(std::string(12, 'x')).ok());
}

}  // namespace
}  // namespace faultline::fabric
