#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "resilient_ccl/nccl/handle.h"
#include "resilient_ccl/transport/tcp/socket.h"
#include "tests/unit/nccl_plugin/conformance.h"

namespace faultline::test {
namespace {

using ::testing::HasSubstr;

/// Devices, and how connections and communicators begin and end.
class ConnectionTest : public ConformanceTest {};

TEST_P(ConnectionTest, ADeviceIsANicOfTheHost) {
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

// NCCL asks for what is there: nothing of GPU memory, of devices that drive the network, of a
// receive whose end need not be told, or of NICs put together.
TEST_P(ConnectionTest, WhatItCannotDoIsLeftOut) {
  EXPECT_THAT(net.missing(),
              ::testing::ElementsAre("regMrDmaBuf", "getDeviceMr", "irecvConsumed", "makeVDevice"));
  EXPECT_EQ(net.setNetAttr(), NetResult::kSuccess);
}

TEST_P(ConnectionTest, ConnectAndAcceptDoNotBlock) {
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
TEST_P(ConnectionTest, ConnectDoesNotWaitForAnAnswer) {
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

TEST_P(ConnectionTest, ManyConnectionsDoNotHinderEachOther) {
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

TEST_P(ConnectionTest, OneThreadConnectsAndAnotherMovesTheData) {
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

TEST_P(ConnectionTest, AConnectionIsClosedWithRequestsUnderWay) {
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
TEST_P(ConnectionTest, WhatWasNeverMadeCanBeClosed) {
  EXPECT_EQ(net.closeSend(nullptr), NetResult::kSuccess);
  EXPECT_EQ(net.closeRecv(nullptr), NetResult::kSuccess);
  EXPECT_EQ(net.closeListen(nullptr), NetResult::kSuccess);
}

TEST_P(ConnectionTest, ACommunicatorEndsWhileAnotherGoesOn) {
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

TEST_P(ConnectionTest, AnAbortLeavesNothingThatHindersTheNextCommunicator) {
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

TEST_P(ConnectionTest, AHandleOfAnotherNetworkIsRefusedWithAHint) {
  std::array<std::byte, nccl::kNetHandleBytes> handle{};
  void* connection = nullptr;
  EXPECT_NE(net.connect(0, handle.data(), &connection), NetResult::kSuccess);
  EXPECT_THAT(NetDriver::warnings().back(), HasSubstr("NCCL_NET_PLUGIN=faultline"));
}

TEST_P(ConnectionTest, ConnectingToAListenerThatIsClosedIsAnErrorThatSaysSo) {
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

TEST_P(ConnectionTest, AForkedChildHasNoUseOfIt) {
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

INSTANTIATE_TEST_SUITE_P(Versions, ConnectionTest, ::testing::Values(10, 11, 12), versionName);

}  // namespace
}  // namespace faultline::test
