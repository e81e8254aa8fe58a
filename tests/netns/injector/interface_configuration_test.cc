// What an interface loses when it goes down, or its carrier goes, and what puts it back.
#include "injector/netlink/interface_configuration.h"

#include <gmock/gmock.h>

#include "tests/netns/injector/dressed_port.h"

namespace faultline::netlink {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class InterfaceConfigurationTest : public DressedPortTest {
 protected:
  void SetUp() override {
    DressedPortTest::SetUp();
    if (!IsSkipped()) dress();
  }

  /// Everything that one may set and that may be lost.
  void dress() {
    host(R"(
ip address add 10.1.0.1/24 dev r0 label r0:a
ip address add 10.1.0.11/24 dev r0
ip address add 10.1.0.12/24 dev r0 metric 77
ip address add 10.1.7.1 peer 10.1.7.2 dev r0
ip address add 10.1.8.1/24 dev r0 noprefixroute
ip address add 10.1.9.1/24 dev r0 valid_lft 10000 preferred_lft 9000
ip route add default via 10.1.0.2 dev r0 metric 50
ip route add 10.90.0.0/16 via 10.1.0.2 mtu lock 1300 initcwnd 20 metric 33
ip route add 10.91.0.0/16 dev r0 scope link src 10.1.0.11
ip route add 10.92.0.0/16 via 10.77.0.1 dev r0 onlink
ip route add 10.93.0.0/16 via 10.1.0.2 table 100 proto 99
ip route add 10.93.0.0/16 via 10.1.0.3 table 70000 tos 0x10
ip route add 10.94.0.0/16 nexthop via 10.1.0.2 dev r0 weight 3 nexthop via 10.200.0.2 dev other
ip route add 10.97.0.0/16 nexthop via 10.1.0.2 dev r0 weight 3 nexthop via 10.1.0.3 dev r0 weight 2
ip route add 10.98.0.0/16 via 10.200.0.2 metric 9
ip route append 10.98.0.0/16 via 10.1.0.2 metric 9
ip route add 10.99.0.0/16 via 10.1.0.2 metric 9
ip route append 10.99.0.0/16 via 10.200.0.2 metric 9
ip route add multicast 239.1.0.0/16 dev r0
ip route add 10.50.0.0/24 dev r0
ip route add 10.51.0.0/24 via 10.50.0.1
ip nexthop add id 5 via 10.1.0.2 dev r0 proto 99
ip nexthop add id 6 via 10.200.0.2 dev other
ip nexthop add id 3 group 5,4/6,2
ip nexthop add id 8 dev r0
ip nexthop add id 9 group 8/5
ip route add 10.95.0.0/16 nhid 5
ip route add 10.96.0.0/16 nhid 3
ip route add 10.95.1.0/24 nhid 9 table 100
ip neighbour add 10.1.0.2 lladdr 02:bb:00:00:00:02 nud permanent dev r0
ip neighbour add 10.1.0.3 lladdr 02:bb:00:00:00:03 nud reachable dev r0
ip neighbour add proxy 10.1.0.77 dev r0
ip -6 address add fd01::1/64 dev r0 nodad
ip -6 address add fd01::2/64 dev r0 nodad preferred_lft 0
ip -6 address add fd01::3/64 dev r0 metric 300 nodad
ip -6 address add fd01:5::3/64 dev r0 metric 300
ip -6 address add fd01:8::1/64 dev r0 nodad noprefixroute
ip -6 address add fd01:9::1/64 dev r0 valid_lft 10000 preferred_lft 9000
ip -6 address add fd01:7::1 peer fd01:7::2/128 dev r0
ip -6 address add fe80::1234/64 dev r0
ip -6 route add default via fd01::ff dev r0 metric 50
ip -6 route add fd90::/64 via fd01::ff metric 33 mtu 1300
ip -6 route add fd91::/64 via fe80::9 dev r0
ip -6 route add fd92::/64 dev r0 src fd01::2
ip -6 route add fd93::/64 via fd01::ff table 100
ip -6 route add fd94::/64 from fd01::/64 via fd01::ff
ip -6 route add fd95::/64 dev r0 expires 3000
ip -6 route add fd96::/64 nexthop via fd01::fe dev r0 weight 2 nexthop via fd01::ff dev r0
ip -6 route add fd99::/64 via fd98::1 dev r0 onlink
ip -6 nexthop add id 55 via fd01::ff dev r0
ip -6 route add fd97::/64 nhid 55
ip -6 neighbour add fd01::ff lladdr 02:bb:00:00:00:02 router nud permanent dev r0
ip -6 neighbour add proxy fd01::77 dev r0
echo 1380 >/proc/sys/net/ipv6/conf/r0/mtu
)");
  }

  InterfaceConfiguration note() {
    auto configuration = InterfaceConfiguration::read(*socket_, kPort);
    EXPECT_OK(configuration.status());
    return configuration.ok() ? *configuration : InterfaceConfiguration();
  }
};

TEST_F(InterfaceConfigurationTest, AllThatGoingDownLosesIsPutBack) {
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  downAndUp();
  ASSERT_OK_AND_ASSIGN(const int missing, noted.missing(*socket_));
  EXPECT_GE(missing, 40);
  EXPECT_OK(noted.restore(*socket_));
  EXPECT_EQ(difference(before, state()), "");
  ASSERT_OK_AND_ASSIGN(const Lines left, noted.missingInWords(*socket_));
  EXPECT_EQ(left, Lines());
}

TEST_F(InterfaceConfigurationTest, WithoutBeingPutBackEachKindIsLost) {
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  downAndUp();
  const Lines lost = lostOf(before, state());
  for (const char* const some :
       {"inet6 fd01::1/64", "inet6 fe80::1234", "default via 10.1.0.2", "10.95.0.0/16 nhid 5",
        "fd95::/64", "id 5 via 10.1.0.2", "id 3 group 5,4/6,2", "10.1.0.2 dev r0 lladdr",
        "fd01::77 dev r0", "1380"}) {
    EXPECT_THAT(lost, Contains(HasSubstr(some)));
  }
  ASSERT_OK_AND_ASSIGN(const Lines words, noted.missingInWords(*socket_));
  for (const char* const some :
       {"route 10.93.0.0/16 via 10.1.0.2 dev r0 table 100", "address fe80::1234/64 dev r0",
        "route 10.92.0.0/16 via 10.77.0.1 dev r0 onlink", "route multicast 239.1.0.0/16 dev r0",
        "route default via fd01::ff dev r0 metric 50", "nexthop id 5 via 10.1.0.2 dev r0",
        "route fd94::/64 from fd01::/64 via fd01::ff dev r0 metric 1024", "IPv6 MTU 1380",
        "route 10.97.0.0/16 nexthop via 10.1.0.2 dev r0 weight 3 nexthop via 10.1.0.3 dev r0 "
        "weight 2",
        "route 10.95.0.0/16 nhid 5", "nexthop id 3 group 5,4/6,2",
        "neighbour 10.1.0.2 lladdr 02:bb:00:00:00:02 dev r0", "neighbour proxy fd01::77 dev r0",
        "address fd01:7::1 peer fd01:7::2/128 dev r0"}) {
    EXPECT_THAT(words, Contains(some));
  }
}

TEST_F(InterfaceConfigurationTest, WhatACarrierLossCostsIsPutBack) {
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  loseCarrier();
  EXPECT_THAT(lostOf(before, state()), Contains(HasSubstr("id 5 via 10.1.0.2")));
  EXPECT_OK(noted.restore(*socket_));
  EXPECT_EQ(difference(before, state()), "");
}

TEST_F(InterfaceConfigurationTest, WhatWasWrittenAndReadAgainPutsBackTheSame) {
  const Lines before = state();
  const auto json = parseJson(note().toJson().dump());
  ASSERT_OK_AND_ASSIGN(const auto noted, InterfaceConfiguration::fromJson(*json));
  downAndUp();
  EXPECT_OK(noted.restore(*socket_));
  EXPECT_EQ(difference(before, state()), "");
}

}  // namespace
}  // namespace faultline::netlink
