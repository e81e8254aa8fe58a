#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "resilient_ccl/nccl/handle.h"
#include "resilient_ccl/transport/tcp/socket.h"
#include "tests/support/net_driver.h"

// Each clause of NCCL's network interface, in each of its versions: the plugin is loaded and called
// as NCCL's proxy does. Both ends of a connection are in this process, over loopback; the plugin
// does not know.

namespace faultline::test {
namespace {

using ::testing::HasSubstr;

constexpr int kTag = 3;
constexpr Duration kLong = 20s;

class ConformanceTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    setenv("FAULTLINE_NICS", "lo", 1);
    setenv("FAULTLINE_MANAGEMENT", "lo", 1);
    ASSERT_EQ(net.error(), "");
    ASSERT_EQ(net.init(), NetResult::kSuccess);
  }
  void TearDown() override { EXPECT_EQ(net.finalize(), NetResult::kSuccess); }

  void* send(void* connection, const void* data, std::size_t size, int tag = kTag) {
    void* request = nullptr;
    EXPECT_EQ(net.isend(connection, data, size, tag, &request), NetResult::kSuccess);
    return request;
  }
  void* receive(void* connection, void* data, std::size_t size, int tag = kTag) {
    void* request = reinterpret_cast<void*>(1);  // completion is optional: it comes all the same
    EXPECT_EQ(net.irecv(connection, std::span(&data, 1), std::span(&size, 1), std::span(&tag, 1),
                        &request),
              NetResult::kSuccess);
    return request;
  }
  /// Tests until the request is done; its size, -1: never, -2: an error.
  int await(void* request, Duration time = kLong) {
    const TimePoint deadline = now() + time;
    std::array<int, nccl::kNetMaxRequests> sizes{};
    while (now() < deadline) {
      int done = 0;
      if (net.test(request, &done, sizes.data()) != NetResult::kSuccess) return -2;
      if (done != 0) return sizes[0];
    }
    return -1;
  }
  void close(const Ends& ends) {
    EXPECT_EQ(net.closeSend(ends.send), NetResult::kSuccess);
    EXPECT_EQ(net.closeRecv(ends.receive), NetResult::kSuccess);
  }

  NetDriver net{FAULTLINE_NET_PLUGIN, GetParam()};
};

TEST_P(ConformanceTest, ADeviceIsANicOfTheHost) {
  EXPECT_EQ(net.name(), "Faultline");  // NCCL_NET
  EXPECT_EQ(net.devices(), 1);
  NetDriver::Properties its;
  ASSERT_EQ(net.properties(0, its), NetResult::kSuccess);
  EXPECT_EQ(its.name, "lo");
  EXPECT_EQ(its.pciPath, "");
  EXPECT_GT(its.speed, 0);
  EXPECT_EQ(its.pointers, nccl::kNetPointerHost);
  EXPECT_GT(its.maxReceives, 1);
  EXPECT_GT(its.maxConnections, 1000);
  EXPECT_EQ(its.port, 0);
  EXPECT_EQ(its.registrationIsGlobal, 1);
  EXPECT_EQ(its.forceFlush, 0);
  EXPECT_EQ(its.deviceType, 0);  // the host's
  EXPECT_EQ(its.latency, 0) << "as NCCL's own sockets, or it takes other algorithms than there";
  EXPECT_EQ(its.members, 1);
  EXPECT_EQ(its.firstMember, 0);
  for (const std::size_t most : {its.maxPointToPoint, its.maxCollective}) {
    EXPECT_GT(most, 0U);
    EXPECT_LE(most, nccl::kNetMaxBytes);
  }
  if (GetParam() >= 11) {
    EXPECT_EQ(its.maxMultiRequest, 1);
  }
  if (GetParam() >= 12) {
    EXPECT_EQ(its.railId, 0);
    EXPECT_EQ(its.planeId, -1);
  }
  EXPECT_NE(net.properties(1, its), NetResult::kSuccess);
  EXPECT_NE(net.properties(-1, its), NetResult::kSuccess);
}

TEST_P(ConformanceTest, ConnectAndAcceptDoNotBlock) {
  std::array<std::byte, nccl::kNetHandleBytes> handle;
  void *listener = nullptr, *connection = nullptr;
  ASSERT_EQ(net.listen(0, handle.data(), &listener), NetResult::kSuccess);
  // Nobody connects: "call again", at once.
  const TimePoint begin = now();
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(net.accept(listener, &connection), NetResult::kSuccess);
    EXPECT_EQ(connection, nullptr);
  }
  ASSERT_EQ(net.connect(0, handle.data(), &connection), NetResult::kSuccess);
  EXPECT_LT(now() - begin, 1s);
  void* accepted = nullptr;
  const TimePoint deadline = now() + kLong;
  while ((connection == nullptr || accepted == nullptr) && now() < deadline) {
    if (connection == nullptr) {
      ASSERT_EQ(net.connect(0, handle.data(), &connection), NetResult::kSuccess);
    }
    if (accepted == nullptr) {
      ASSERT_EQ(net.accept(listener, &accepted), NetResult::kSuccess);
    }
  }
  ASSERT_NE(connection, nullptr);
  ASSERT_NE(accepted, nullptr);
  EXPECT_EQ(net.closeListen(listener), NetResult::kSuccess);  // before the connection ends
  close({connection, accepted});
}

// Whoever has the address of the handle takes the call, and says nothing.
TEST_P(ConformanceTest, ConnectDoesNotWaitForAnAnswer) {
  std::array<std::byte, nccl::kNetHandleBytes> bytes;
  void *listener = nullptr, *connection = nullptr;
  ASSERT_EQ(net.listen(0, bytes.data(), &listener), NetResult::kSuccess);
  auto handle = nccl::Handle::read(bytes);
  ASSERT_TRUE(handle.ok());
  const auto mute = transport::tcp::openListener({handle->rendezvous.address, "", 0});
  ASSERT_TRUE(mute.ok());
  const auto there = transport::tcp::localEndpoint(mute->get());
  ASSERT_TRUE(there.ok());
  handle->rendezvous = *there;
  handle->write(bytes);
  const TimePoint begin = now();
  while (now() - begin < 50ms) {
    const TimePoint call = now();
    ASSERT_EQ(net.connect(0, bytes.data(), &connection), NetResult::kSuccess);
    ASSERT_EQ(connection, nullptr);
    ASSERT_LT(now() - call, 1s);
  }
  EXPECT_EQ(net.closeListen(listener), NetResult::kSuccess);
}

TEST_P(ConformanceTest, MessagesOfAllSizesArriveWhole) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  for (const std::size_t size : {0UL, 1UL, 8192UL, 65536UL, 65537UL, 3000001UL}) {
    std::vector<std::byte> from(size), to(size + 1, std::byte{99});
    for (std::size_t i = 0; i < size; ++i) from[i] = static_cast<std::byte>(i * 13 + size);
    void* const got = receive(ends.receive, to.data(), size);
    void* const sent = send(ends.send, from.data(), size);
    ASSERT_NE(got, nullptr);
    ASSERT_NE(sent, nullptr);
    EXPECT_EQ(await(sent), static_cast<int>(size));
    EXPECT_EQ(await(got), static_cast<int>(size));
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin())) << size;
    EXPECT_EQ(to.back(), std::byte{99});
  }
  close(ends);
}

TEST_P(ConformanceTest, AReceiveMayBeLargerThanItsMessage) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  std::vector<std::byte> from(1000, std::byte{7}), to(100000, std::byte{1});
  void* const got = receive(ends.receive, to.data(), to.size());
  void* const sent = send(ends.send, from.data(), from.size());
  EXPECT_EQ(await(sent), 1000);
  EXPECT_EQ(await(got), 1000);
  EXPECT_EQ(std::ranges::count(to, std::byte{7}), 1000);
  close(ends);
}

TEST_P(ConformanceTest, AMessageLargerThanItsReceiveFailsAlone) {
  const Ends good = connectHere(net);
  ASSERT_NE(good.receive, nullptr);
  for (const std::size_t size : {1000UL, 200000UL}) {
    const Ends bad = connectHere(net);
    ASSERT_NE(bad.receive, nullptr);
    std::vector<std::byte> from(size, std::byte{7}), to(size, std::byte{1});
    void* const got = receive(bad.receive, to.data(), 10);
    void* const sent = send(bad.send, from.data(), from.size());
    EXPECT_EQ(await(sent), -2);
    EXPECT_EQ(await(got), -2);
    EXPECT_EQ(std::ranges::count(to, std::byte{7}), 0);
    void* const received = receive(good.receive, to.data(), to.size());
    EXPECT_EQ(await(send(good.send, from.data(), from.size())), static_cast<int>(size));
    EXPECT_EQ(await(received), static_cast<int>(size));
    close(bad);
  }
  close(good);
}

TEST_P(ConformanceTest, MessagesMatchInTheOrderOfPostingWhicheverEndIsFirst) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  constexpr int kCount = nccl::kNetMaxRequests;
  for (const bool sendsFirst : {true, false}) {
    std::vector<std::int64_t> from(kCount), to(kCount);
    std::vector<void*> sent(kCount), got(kCount);
    const auto sendAll = [&] {
      for (int i = 0; i < kCount; ++i) {
        from[i] = 1000 + i;
        sent[i] = send(ends.send, &from[i], sizeof(from[i]));
        ASSERT_NE(sent[i], nullptr);
      }
    };
    if (sendsFirst) sendAll();
    for (int i = 0; i < kCount; ++i) {
      got[i] = receive(ends.receive, &to[i], sizeof(to[i]));
      ASSERT_NE(got[i], nullptr);
    }
    if (!sendsFirst) sendAll();
    // Asked in another order than they were posted in.
    for (int i = kCount; i-- > 0;) EXPECT_EQ(await(got[i]), 8);
    for (int i = 0; i < kCount; ++i) EXPECT_EQ(await(sent[i]), 8);
    EXPECT_EQ(from, to);
  }
  close(ends);
}

TEST_P(ConformanceTest, WhenThereIsNoRoomForARequestThereIsNone) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  std::vector<std::int64_t> to(nccl::kNetMaxRequests + 1);
  std::vector<void*> got;
  for (int i = 0; i < nccl::kNetMaxRequests; ++i) {
    got.push_back(receive(ends.receive, &to[i], 8));
    ASSERT_NE(got.back(), nullptr);
  }
  EXPECT_EQ(receive(ends.receive, &to.back(), 8), nullptr);  // "try again"
  const std::int64_t value = 5;
  EXPECT_EQ(await(send(ends.send, &value, 8)), 8);
  EXPECT_EQ(await(got[0]), 8);
  EXPECT_NE(receive(ends.receive, &to.back(), 8), nullptr);
  close(ends);
}

TEST_P(ConformanceTest, TheBuffersOfAGroupedReceiveGetTheMessagesWithTheirTags) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  constexpr int kCount = 4;
  for (int round = 0; round < 3; ++round) {
    std::array<std::int32_t, kCount> to{}, from{};
    std::array<void*, kCount> data{}, sent{};
    std::array<std::size_t, kCount> sizes{};
    std::array<int, kCount> tags{}, got{};
    for (int i = 0; i < kCount; ++i) {
      data[i] = &to[i];
      sizes[i] = sizeof(to[i]);
      tags[i] = 70 + i;
    }
    void* request = nullptr;
    ASSERT_EQ(net.irecv(ends.receive, data, sizes, tags, &request), NetResult::kSuccess);
    ASSERT_NE(request, nullptr);
    // The last tag first, and the third message shorter.
    for (int i = kCount; i-- > 0;) {
      from[i] = 100 * round + i;
      sent[i] = send(ends.send, &from[i], i == 2 ? 2 : 4, tags[i]);
      int done = 0;
      ASSERT_EQ(net.test(request, &done, got.data()), NetResult::kSuccess);
      EXPECT_TRUE(i == 0 || done == 0) << "not all have come";
      if (done != 0) request = nullptr;
    }
    const TimePoint deadline = now() + kLong;
    while (request != nullptr && now() < deadline) {
      int done = 0;
      ASSERT_EQ(net.test(request, &done, got.data()), NetResult::kSuccess);
      if (done != 0) request = nullptr;
    }
    EXPECT_EQ(got, (std::array<int, kCount>{4, 4, 2, 4}));
    EXPECT_EQ(to, from);
    for (void* one : sent) EXPECT_GE(await(one), 2);
  }
  close(ends);
}

TEST_P(ConformanceTest, MoreBuffersThanAnnouncedAreRefused) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  std::array<char, 9> to{};
  std::array<void*, 9> data{};
  std::array<std::size_t, 9> sizes{};
  std::array<int, 9> tags{};
  for (int i = 0; i < 9; ++i) data[i] = &to[i];
  void* request = nullptr;
  EXPECT_NE(net.irecv(ends.receive, data, sizes, tags, &request), NetResult::kSuccess);
  close(ends);
}

TEST_P(ConformanceTest, ManyConnectionsDoNotHinderEachOther) {
  constexpr int kCount = 24;
  std::vector<Ends> all;
  for (int i = 0; i < kCount; ++i) {
    all.push_back(connectHere(net));
    ASSERT_NE(all.back().receive, nullptr) << i;
  }
  // A receive that nothing is ever sent to is under way on each of them.
  std::vector<std::int64_t> from(kCount), to(kCount), never(kCount);
  std::vector<void*> got, sent;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_NE(receive(all[i].receive, &never[i], 8, /*tag=*/99), nullptr);
    got.push_back(receive(all[i].receive, &to[i], 8));
  }
  for (int i = 0; i < kCount; ++i) {
    from[i] = i + 1;
    sent.push_back(send(all[i].send, &from[i], 8));
  }
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(await(got[i]), 8);
    EXPECT_EQ(await(sent[i]), 8);
  }
  EXPECT_EQ(from, to);
  for (const Ends& ends : all) close(ends);
}

TEST_P(ConformanceTest, OneThreadConnectsAndAnotherMovesTheData) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  std::vector<std::byte> from(500000, std::byte{4}), to(500000);
  std::thread progress([&] {
    void* const got = receive(ends.receive, to.data(), to.size());
    EXPECT_EQ(await(send(ends.send, from.data(), from.size())), 500000);
    EXPECT_EQ(await(got), 500000);
  });
  // Meanwhile the first one makes another connection.
  const Ends second = connectHere(net);
  EXPECT_NE(second.receive, nullptr);
  progress.join();
  EXPECT_EQ(from, to);
  close(ends);
  close(second);
}

/// What the plugin's thread may be writing: to ask the plugin would be to poll it.
__attribute__((no_sanitize("thread"))) std::int64_t peek(const volatile std::int64_t& value) {
  return value;
}

TEST_P(ConformanceTest, AnEndThatNobodyPollsGoesOn) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  std::int64_t from = 77, to = 0;
  void* const got = receive(ends.receive, &to, 8);
  void* const sent = send(ends.send, &from, 8);
  // Nobody calls the plugin; its own thread does the rest.
  const TimePoint deadline = now() + kLong;
  while (peek(to) != 77 && now() < deadline) std::this_thread::sleep_for(1ms);
  EXPECT_LT(now(), deadline);
  EXPECT_EQ(await(got), 8);
  EXPECT_EQ(await(sent), 8);
  close(ends);
}

TEST_P(ConformanceTest, AConnectionIsClosedWithRequestsUnderWay) {
  const Ends closed = connectHere(net), other = connectHere(net);
  ASSERT_NE(other.receive, nullptr);
  std::vector<std::byte> from(4'000'000, std::byte{8});
  auto to = std::make_unique<std::vector<std::byte>>(4'000'000);
  std::vector<std::byte> never(1000);
  void* const gone = receive(closed.receive, to->data(), to->size());
  receive(closed.receive, never.data(), never.size());
  void* const sent = send(closed.send, from.data(), from.size());
  ASSERT_NE(gone, nullptr);
  const TimePoint begin = now();
  EXPECT_EQ(net.closeRecv(closed.receive), NetResult::kSuccess);
  EXPECT_LT(now() - begin, 5s);
  to.reset();  // the address sanitizer sees who still writes there
  EXPECT_NE(await(sent), -1) << "it fails, or had arrived";
  EXPECT_EQ(net.closeSend(closed.send), NetResult::kSuccess);

  std::vector<std::byte> arrived(from.size());
  void* const got = receive(other.receive, arrived.data(), arrived.size());
  EXPECT_EQ(await(send(other.send, from.data(), from.size())), 4'000'000);
  EXPECT_EQ(await(got), 4'000'000);
  EXPECT_EQ(arrived, from);
  close(other);
}

// As NCCL's own transports take it: what was never made is closed too when a communicator fails.
TEST_P(ConformanceTest, WhatWasNeverMadeCanBeClosed) {
  EXPECT_EQ(net.closeSend(nullptr), NetResult::kSuccess);
  EXPECT_EQ(net.closeRecv(nullptr), NetResult::kSuccess);
  EXPECT_EQ(net.closeListen(nullptr), NetResult::kSuccess);
}

TEST_P(ConformanceTest, ACommunicatorEndsWhileAnotherGoesOn) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  std::vector<std::byte> from(3'000'000, std::byte{5}), to(from.size());
  void* const got = receive(ends.receive, to.data(), to.size());
  void* const sent = send(ends.send, from.data(), from.size());
  ASSERT_EQ(net.init(), NetResult::kSuccess);
  const Ends others = connectHere(net);
  ASSERT_NE(others.receive, nullptr);
  close(others);
  EXPECT_EQ(net.finalize(), NetResult::kSuccess);
  EXPECT_EQ(await(sent), 3'000'000);
  EXPECT_EQ(await(got), 3'000'000);
  EXPECT_EQ(to, from);
  close(ends);
}

TEST_P(ConformanceTest, AnAbortLeavesNothingThatHindersTheNextCommunicator) {
  {
    // As NCCL's proxies do it: no request is tested any more, everything is closed.
    const Ends ends = connectHere(net);
    ASSERT_NE(ends.receive, nullptr);
    std::vector<std::byte> from(8'000'000), to(from.size()), never(1000);
    receive(ends.receive, to.data(), to.size());
    receive(ends.receive, never.data(), never.size());
    send(ends.send, from.data(), from.size());
    EXPECT_EQ(net.closeSend(ends.send), NetResult::kSuccess);
    EXPECT_EQ(net.closeRecv(ends.receive), NetResult::kSuccess);
  }
  const TimePoint begin = now();
  EXPECT_EQ(net.finalize(), NetResult::kSuccess);
  EXPECT_LT(now() - begin, 5s) << "what was withdrawn is not waited for";
  ASSERT_EQ(net.init(), NetResult::kSuccess);
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  const std::int64_t from = 11;
  std::int64_t to = 0;
  void* const got = receive(ends.receive, &to, sizeof(to));
  EXPECT_EQ(await(send(ends.send, &from, sizeof(from))), 8);
  EXPECT_EQ(await(got), 8);
  EXPECT_EQ(to, from);
  close(ends);
}

TEST_P(ConformanceTest, OnlyHostMemoryIsRegistered) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  int data = 0;
  void *region = nullptr, *request = &data;
  EXPECT_EQ(net.regMr(ends.send, &data, sizeof(data), nccl::kNetPointerHost, &region),
            NetResult::kSuccess);
  EXPECT_NE(region, nullptr);
  EXPECT_NE(net.regMr(ends.send, &data, sizeof(data), 2, &region), NetResult::kSuccess);
  EXPECT_EQ(net.iflush(ends.receive, &data, sizeof(data), &request), NetResult::kSuccess);
  EXPECT_EQ(request, nullptr);  // nothing to wait for
  close(ends);
}

TEST_P(ConformanceTest, AHandleOfAnotherNetworkIsRefusedWithAHint) {
  std::array<std::byte, nccl::kNetHandleBytes> handle{};
  void* connection = nullptr;
  EXPECT_NE(net.connect(0, handle.data(), &connection), NetResult::kSuccess);
  EXPECT_THAT(NetDriver::warnings().back(), HasSubstr("NCCL_NET_PLUGIN=faultline"));
}

TEST_P(ConformanceTest, ConnectingToAListenerThatIsClosedIsAnErrorThatSaysSo) {
  std::array<std::byte, nccl::kNetHandleBytes> handle;
  void *listener = nullptr, *connection = nullptr;
  ASSERT_EQ(net.listen(0, handle.data(), &listener), NetResult::kSuccess);
  ASSERT_EQ(net.closeListen(listener), NetResult::kSuccess);
  NetResult result = NetResult::kSuccess;
  const TimePoint deadline = now() + kLong;
  while (result == NetResult::kSuccess && now() < deadline) {
    result = net.connect(0, handle.data(), &connection);
    ASSERT_EQ(connection, nullptr);
  }
  EXPECT_EQ(result, NetResult::kRemoteError);
  EXPECT_THAT(NetDriver::warnings().back(), HasSubstr("listener has been closed"));
}

TEST_P(ConformanceTest, AForkedChildHasNoUseOfIt) {
  const Ends ends = connectHere(net);
  ASSERT_NE(ends.receive, nullptr);
  const pid_t child = fork();
  if (child == 0) {
    void *listener = nullptr, *request = nullptr;
    std::array<std::byte, nccl::kNetHandleBytes> handle;
    const int data = 1;
    const bool refused =
        net.listen(0, handle.data(), &listener) == NetResult::kInternalError &&
        net.isend(ends.send, &data, sizeof(data), kTag, &request) == NetResult::kInternalError;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::int64_t from = 3, to = 0;  // and the parent goes on
  void* const got = receive(ends.receive, &to, 8);
  EXPECT_EQ(await(send(ends.send, &from, 8)), 8);
  EXPECT_EQ(await(got), 8);
  close(ends);
}

INSTANTIATE_TEST_SUITE_P(Versions, ConformanceTest, ::testing::Values(10, 11, 12),
                         [](const auto& version) { return "v" + std::to_string(version.param); });

}  // namespace
}  // namespace faultline::test
