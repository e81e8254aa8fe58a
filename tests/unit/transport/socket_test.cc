#include "resilient_ccl/transport/tcp/socket.h"

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <string>

namespace faultline::transport::tcp {
namespace {

const SocketPlace kLoopback{0x7f000001, "", 0};

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
  EXPECT_TRUE(name.data() == std::string("cubic") || name.data() == std::string("reno"));
  EXPECT_EQ(streamCongestionControl(), name.data());
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

}  // namespace
}  // namespace faultline::transport::tcp
