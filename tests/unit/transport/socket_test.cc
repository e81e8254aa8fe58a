#include "resilient_ccl/transport/tcp/socket.h"

#include <gtest/gtest.h>

namespace faultline::transport::tcp {
namespace {

constexpr SocketPlace kLoopback{0x7f000001, "", 0};

TEST(SocketTest, ADatagramPortIsOfOneProcessAlone) {
  const auto first = openUdp(kLoopback, 0);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const std::uint16_t port = localEndpoint(first->get())->port;
  const auto second = openUdp(kLoopback, port);
  EXPECT_FALSE(second.ok()) << "the kernel would choose one of the two for each datagram";
}

}  // namespace
}  // namespace faultline::transport::tcp
