#include "resilient_ccl/transport/tcp/socket.h"

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <thread>

#include "base/clock.h"
#include "resilient_ccl/transport/tcp/congestion_control.h"

namespace faultline::transport::tcp {
namespace {

const SocketPlace kLoopback{0x7f000001, "", 0};

TEST(SocketTest, AnAddressIsWrittenAndReadAsFourNumbers) {
  EXPECT_EQ(formatAddress(0x0a01fe03), "10.1.254.3");
  EXPECT_EQ((Endpoint{0x7f000001, 4711}.toString()), "127.0.0.1:4711");
  const auto read = parseAddress("10.1.254.3");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, 0x0a01fe03u);
  EXPECT_EQ(parseAddress("10.1.254").status().code(), Code::kInvalidArgument);
}

TEST(SocketTest, AllIsSentAndReceivedHoweverLittleFitsAtATime) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  UniqueFd near(ends[0]);
  const UniqueFd far(ends[1]);
  std::string sent(1 << 20, '\0');  // more than the kernel holds
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i % 251);
  std::string received(sent.size(), '\0');
  const TimePoint deadline = now() + 20s;
  std::thread sender([&] {
    const Status done = sendAll(near.get(), sent.data(), sent.size(), deadline);
    EXPECT_TRUE(done.ok()) << done.message();
  });
  const Status done = receiveAll(far.get(), received.data(), received.size(), deadline);
  sender.join();
  ASSERT_TRUE(done.ok()) << done.message();
  EXPECT_TRUE(sent == received);
  EXPECT_EQ(receiveAll(far.get(), received.data(), 1, now() + 10ms).code(),
            Code::kDeadlineExceeded);
  near.reset();
  EXPECT_EQ(receiveAll(far.get(), received.data(), 1, deadline).code(), Code::kUnavailable);
}

TEST(SocketTest, WhatIsBrokenIsSaidAtOnceAndNotWaitedFor) {
  const UniqueFd apart(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  char byte = 0;
  const TimePoint deadline = now() + 20s;
  const Status received = receiveAll(apart.get(), &byte, 1, deadline);
  EXPECT_EQ(received.code(), Code::kIo) << received.message();
  EXPECT_NE(received.message().find("receive"), std::string::npos);
  const Status sent = sendAll(apart.get(), &byte, 1, deadline);
  EXPECT_EQ(sent.code(), Code::kUnavailable) << sent.message();
  EXPECT_NE(sent.message().find("send"), std::string::npos);
  EXPECT_LT(now(), deadline);
}

// As of the shared socket of a rail, which belongs to no address.
TEST(SocketTest, ADatagramLeavesFromTheAddressThatItIsGiven) {
  const auto there = openUdp(kLoopback), here = openUdp({});
  ASSERT_TRUE(there.ok() && here.ok());
  sockaddr_in to = localEndpoint(there->get())->toSockaddr();
  char word = 'w';
  iovec piece{&word, sizeof(word)};
  for (const std::uint32_t source : {0x7f000002u, 0x7f000003u, 0u}) {
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof(to);
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    const DatagramSource from(message, source);
    ASSERT_EQ(sendmsg(here->get(), &message, 0), 1);
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    ASSERT_EQ(recvfrom(there->get(), &word, 1, 0, reinterpret_cast<sockaddr*>(&address), &size), 1);
    const std::uint32_t expected = source == 0 ? kLoopback.address : source;  // the kernel's choice
    EXPECT_EQ(formatAddress(Endpoint::fromSockaddr(address).address), formatAddress(expected));
  }
}

TEST(SocketTest, APortOfAStreamIsFreeAsSoonAsItsListenerIsGone) {
  const auto listener = openListener(kLoopback);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  const auto reusable = [](int socket) {
    int flag = 0;
    socklen_t size = sizeof(flag);
    EXPECT_EQ(getsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &flag, &size), 0);
    return flag != 0;
  };
  EXPECT_TRUE(reusable(listener->get()));
  const auto datagrams = openUdp(kLoopback, 0);
  ASSERT_TRUE(datagrams.ok()) << datagrams.status().message();
  EXPECT_FALSE(reusable(datagrams->get()));
}

TEST(SocketTest, ADatagramPortIsOfOneProcessAlone) {
  const auto first = openUdp(kLoopback, 0);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const std::uint16_t port = localEndpoint(first->get())->port;
  const auto second = openUdp(kLoopback, port);
  EXPECT_FALSE(second.ok()) << "the kernel would choose one of the two for each datagram";
}

TEST(SocketTest, AStreamDoesNotUseACongestionControlThatStopsToProbe) {
  const auto listener = openListener(kLoopback);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  const auto stream = beginConnect(kLoopback, *localEndpoint(listener->get()));
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  std::array<char, 16> name{};
  socklen_t size = name.size();
  ASSERT_EQ(getsockopt(stream->get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size), 0);
  EXPECT_EQ(name.data(), std::string("reno")) << "in slow start";
}

TEST(SocketTest, TheQueueOfASlowStreamIsKeptShortAndThatOfAFastOneLeftAlone) {
  const auto listener = openListener(kLoopback);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  const auto stream = beginConnect(kLoopback, *localEndpoint(listener->get()));
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  const auto pace = [&] {
    std::uint64_t most = 0;
    socklen_t size = sizeof(most);
    EXPECT_EQ(getsockopt(stream->get(), SOL_SOCKET, SO_MAX_PACING_RATE, &most, &size), 0);
    return most;
  };
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  EXPECT_EQ(pace(), kNone);
  shortenPortQueue(stream->get(), 5e9);
  EXPECT_EQ(pace(), kNone);
  shortenPortQueue(stream->get(), 500e6);
  EXPECT_EQ(pace(), 750'000'000u);
  shortenPortQueue(stream->get(), 1e6);
  EXPECT_EQ(pace(), 125'000'000u) << "it may be given more any time";
  shortenPortQueue(stream->get(), 5e9);
  EXPECT_EQ(pace(), kNone);
}

TEST(SocketTest, AStreamWaitsNoLongerThanTheLongestQueueToSendAgainWhereTheKernelLetsIt) {
  const auto listener = openListener(kLoopback);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  const auto stream = beginConnect(kLoopback, *localEndpoint(listener->get()));
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  constexpr int kTcpRtoMinUs = 45;
  int timeout = 0;
  socklen_t size = sizeof(timeout);
  if (getsockopt(stream->get(), IPPROTO_TCP, kTcpRtoMinUs, &timeout, &size) != 0) {
    GTEST_SKIP() << "this kernel has no TCP_RTO_MIN_US (Linux 6.15)";
  }
  EXPECT_EQ(timeout, 20'000);
  ASSERT_TRUE(streamLeastTimeout().has_value());
  EXPECT_EQ(streamLeastTimeout()->count(), timeout);
}

// Its first round trip has been measured by the time it is accepted.
TEST(SocketTest, AnAcceptedStreamWaitsAsShortlyFromItsFirstByteOn) {
  const auto listener = openListener(kLoopback);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  const auto stream = beginConnect(kLoopback, *localEndpoint(listener->get()));
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  pollfd waiting{.fd = listener->get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&waiting, 1, 10'000), 1);
  const UniqueFd accepted(accept(listener->get(), nullptr, nullptr));
  ASSERT_TRUE(accepted);
  ASSERT_TRUE(configureAccepted(accepted.get(), 0).ok());
  std::array<char, 16> name{};
  socklen_t size = name.size();
  ASSERT_EQ(getsockopt(accepted.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size), 0);
  EXPECT_EQ(name.data(), std::string("reno"));
  if (!streamLeastTimeout()) GTEST_SKIP() << "this kernel has no TCP_RTO_MIN_US (Linux 6.15)";
  tcp_info info{};
  size = sizeof(info);
  ASSERT_EQ(getsockopt(accepted.get(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  // RFC 6298, with the least time in the place of the deviations.
  constexpr std::uint32_t kTicks = 40'000;
  const std::uint32_t slow = info.tcpi_rtt + 4 * info.tcpi_rttvar;
  EXPECT_LE(info.tcpi_rto, slow + streamLeastTimeout()->count() + kTicks);
}

}  // namespace
}  // namespace faultline::transport::tcp
