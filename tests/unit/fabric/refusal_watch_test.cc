#include "resilient_ccl/fabric/refusal_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "loopback.h"

namespace faultline::fabric {
namespace {

using transport::tcp::Endpoint;

class RefusalWatchTest : public ::testing::Test {
 protected:
  static constexpr int kPath = 1;

  RefusalWatchTest() { watch_.watch(true); }

  static UniqueFd open() {
    auto socket = transport::tcp::openUdp({kLoopback, "", 0});
    EXPECT_TRUE(socket.ok()) << socket.status().message();
    return std::move(socket).value();
  }
  static Endpoint endpointOf(const UniqueFd& socket) {
    return transport::tcp::localEndpoint(socket.get()).value();
  }
  /// Where nobody listens any more.
  static Endpoint closedPort() { return endpointOf(open()); }

  void send(const Endpoint& to, int path = kPath, const std::string& device = "") {
    char word = 'w';
    iovec piece{&word, sizeof(word)};
    sockaddr_in address = to.toSockaddr();
    msghdr message{};
    message.msg_name = &address;  // as for a socket that is shared
    message.msg_namelen = sizeof(address);
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    watch_.send(path, {kLoopback, device, 0}, to, message);
  }
  static bool arrived(const UniqueFd& socket) {
    pollfd waiting{.fd = socket.get(), .events = POLLIN, .revents = 0};
    std::array<char, 8> bytes{};
    return poll(&waiting, 1, 0) == 1 && recv(socket.get(), bytes.data(), bytes.size(), 0) == 1;
  }

  RefusalWatch watch_;
};

TEST_F(RefusalWatchTest, WhatSomebodyTakesIsNotRefused) {
  const UniqueFd there = open();
  for (int i = 0; i < 3; ++i) {
    send(endpointOf(there));
    EXPECT_TRUE(arrived(there));
  }
  EXPECT_FALSE(watch_.refused());
}

TEST_F(RefusalWatchTest, APortThatNobodyHasRefusesOnceTheKernelSaysSo) {
  const Endpoint nobody = closedPort();
  send(nobody);
  EXPECT_FALSE(watch_.refused()) << "its answer is read with the next one";
  send(nobody);
  EXPECT_TRUE(watch_.refused());
  EXPECT_TRUE(watch_.takeRefusal());
  EXPECT_FALSE(watch_.takeRefusal()) << "told once";
}

TEST_F(RefusalWatchTest, ARefusalOfOnePathIsNoneOfAnother) {
  const UniqueFd there = open();
  send(closedPort());
  send(endpointOf(there), kPath + 1);
  EXPECT_FALSE(watch_.refused());
  EXPECT_TRUE(arrived(there));
}

TEST_F(RefusalWatchTest, APathThatIsForgottenLeadsToTheNewAddress) {
  const UniqueFd before = open(), after = open();
  send(endpointOf(before));
  watch_.forget(kPath);
  send(endpointOf(after));
  EXPECT_TRUE(arrived(before));
  EXPECT_FALSE(arrived(before));
  EXPECT_TRUE(arrived(after));
}

TEST_F(RefusalWatchTest, WhatWasRefusedBeforeIsNotHeldAgainstWhoIsWatchedAnew) {
  const Endpoint place = closedPort();
  send(place);
  watch_.watch(true);
  send(place);
  EXPECT_FALSE(watch_.refused());
}

TEST_F(RefusalWatchTest, AWayThatIsNotThereLosesADatagram) {
  const UniqueFd there = open();
  send(endpointOf(there), kPath, "no-such-device");
  EXPECT_FALSE(watch_.refused());
  EXPECT_FALSE(arrived(there));
  send(endpointOf(there));
  EXPECT_TRUE(arrived(there)) << "it is tried anew with each";
}

}  // namespace
}  // namespace faultline::fabric
