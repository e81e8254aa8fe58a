// What an interface loses when it goes down, or its carrier goes, and what puts it back.
#include "injector/netlink/interface_configuration.h"

#include <gmock/gmock.h>

#include "tests/netns/injector/dressed_port.h"

namespace faultline::netlink {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class InterfaceConfigurationTest : public DressedPortTest {
 protected:
  void SetUp() override {
    DressedPortTest::SetUp();
    if (!IsSkipped()) dress();
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

TEST_F(InterfaceConfigurationTest, WhatOthersHaveSetMeanwhileStays) {
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  downAndUp();
  const Lines between = state();
  host(R"(
ip address add 10.3.0.1/24 dev r0
ip route add 10.88.0.0/16 via 10.1.0.2
ip neighbour add 10.1.0.50 lladdr 02:bb:00:00:00:50 nud permanent dev r0
ip nexthop add id 71 via 10.200.0.9 dev other
ip nexthop replace id 3 group 6,2/71,7
ip -6 address add fd03::1/64 dev r0 nodad
)");
  const Lines foreign = lostOf(state(), between);
  EXPECT_OK(noted.restore(*socket_));
  const Lines after = state();
  EXPECT_THAT(after, Contains(HasSubstr("id 3 group 5,4/6,2/71,7")));
  for (const std::string& line : lostOf(foreign, after)) {
    EXPECT_THAT(line, AnyOf(HasSubstr("group 6,2/71,7"), HasSubstr("nhid 3"))) << "was lost";
  }
  for (const std::string& line : lostOf(before, after)) {
    EXPECT_THAT(line, AnyOf(HasSubstr("group 5,4/6,2"), HasSubstr("nhid 3"))) << "was lost";
  }
}

// As networkd does: it removes its own addresses while the port is down.
TEST_F(InterfaceConfigurationTest, AddressesInAnotherOrderAreSetRight) {
  host("ip route add 10.201.0.0/16 via 10.200.0.2 dev other src 10.1.0.1");
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  ASSERT_OK(setUp(*socket_, kPort, false));
  host("ip address del 10.1.0.11/24 dev r0; ip address del 10.1.0.1/24 dev r0");
  ASSERT_OK(setUp(*socket_, kPort, true));
  awaitOperational();
  // It has put back its own; the one that somebody else had set has become the primary one.
  host("ip address add 10.1.0.99/24 dev r0; ip address add 10.1.0.1/24 dev r0 label r0:a");
  host("ip route add 10.89.0.0/16 dev r0 src 10.1.0.99");
  ASSERT_OK_AND_ASSIGN(const Lines words, noted.missingInWords(*socket_));
  EXPECT_THAT(words, Contains("the order of its IPv4 addresses, which chooses source addresses"));
  EXPECT_OK(noted.restore(*socket_));
  const Lines after = state();
  EXPECT_THAT(lostOf(before, after), ::testing::IsEmpty()) << difference(before, after);
  EXPECT_THAT(after, Contains(AllOf(HasSubstr("10.1.0.99/24"), HasSubstr("secondary"))));
  EXPECT_THAT(after, Contains(HasSubstr("10.89.0.0/16 dev r0")));
  host("ip address del 10.1.0.99/24 dev r0");
  EXPECT_EQ(difference(before, state()), "");
}

TEST_F(InterfaceConfigurationTest, APartOfARouteOrGroupOverTwoPortsThatFailComesBackWithItsPort) {
  host("ip route add 10.201.0.0/16 via 10.200.0.2 dev other src 10.1.0.1");
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  const auto other = InterfaceConfiguration::read(*socket_, kOtherPort);
  for (const int one : {kPort, kOtherPort}) ASSERT_OK(setUp(*socket_, one, false));
  ASSERT_OK(setUp(*socket_, kPort, true));
  ASSERT_TRUE(test::pollUntil(kLong, [&] { return isOperational(port(kPort)); }));
  EXPECT_OK(noted.restore(*socket_));
  EXPECT_THAT(state(), Contains(HasSubstr("10.94.0.0/16 via 10.1.0.2 dev r0")));
  ASSERT_OK(setUp(*socket_, kOtherPort, true));
  awaitOperational();
  EXPECT_OK(other->restore(*socket_));
  EXPECT_OK(noted.restore(*socket_));
  EXPECT_THAT(lostOf(before, state()), ::testing::IsEmpty());
}

enum class Loss { kPort, kCarrier, kBothPorts };

struct RouteOrderCase {
  const char* name;
  std::vector<const char*> routes;
  Loss loss = Loss::kPort;
};

class RouteOrderTest : public DressedPortTest,
                       public ::testing::WithParamInterface<RouteOrderCase> {};

// All to 10.90.0.0/16, behind one another.
constexpr const char* kOverPort = "via 10.1.0.2 dev r0";
constexpr const char* kOverPort2 = "via 10.1.0.3 dev r0";
constexpr const char* kOverOther = "via 10.200.0.2 dev other";
constexpr const char* kByObject = "nhid 5";
constexpr const char* kOverBoth = "nexthop via 10.1.0.2 dev r0 nexthop via 10.200.0.2 dev other";
constexpr const char* kOverBoth2 = "nexthop via 10.1.0.3 dev r0 nexthop via 10.200.0.3 dev other";

const RouteOrderCase kRouteOrders[] = {
    {"TwoAndThenOneOfOthers", {kOverPort, kOverPort2, kOverOther}},
    {"OneOfOthersAndThenTwo", {kOverOther, kOverPort, kOverPort2}},
    {"OneOnEachSideOfOthers", {kOverPort, kOverOther, kOverPort2}},
    {"AllOfThePort", {kOverPort2, kOverPort, kByObject}},
    {"OneOfTwoLegsFirst", {kOverBoth, kOverPort}},
    {"OneOfTwoLegsLast", {kOverPort, kOverBoth}},
    {"OneOfTwoLegsBetween", {kOverPort, kOverBoth2, kOverPort2, kOverOther}},
    {"AnObjectFirst", {kByObject, kOverPort, kOverPort2}, Loss::kCarrier},
    {"AnObjectBetween", {kOverPort, kByObject, kOverPort2}, Loss::kCarrier},
    {"AnObjectBetweenBehindOthers", {kOverOther, kOverPort, kByObject, kOverPort2}, Loss::kCarrier},
    {"LegsOfTwoPorts", {kOverBoth, kOverBoth2}, Loss::kBothPorts},
    {"LegsOfTwoPortsBehindOthers", {kOverOther, kOverBoth, kOverBoth2}, Loss::kBothPorts},
};

INSTANTIATE_TEST_SUITE_P(Routes, RouteOrderTest, ::testing::ValuesIn(kRouteOrders),
                         [](const auto& one) { return std::string(one.param.name); });

TEST_P(RouteOrderTest, ToOneDestinationComesBack) {
  host("ip address add 10.1.0.1/24 dev r0; ip nexthop add id 5 via 10.1.0.4 dev r0");
  for (const char* const route : GetParam().routes) {
    host(fmt::format("ip route append 10.90.0.0/16 metric 9 {}", route));
  }
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  ASSERT_OK_AND_ASSIGN(const auto other, InterfaceConfiguration::read(*socket_, kOtherPort));
  switch (GetParam().loss) {
    case Loss::kPort:
      downAndUp();
      break;
    case Loss::kCarrier:
      loseCarrier();
      break;
    case Loss::kBothPorts:
      for (const int one : {kPort, kOtherPort}) ASSERT_OK(setUp(*socket_, one, false));
      ASSERT_OK(setUp(*socket_, kPort, true));
      ASSERT_TRUE(test::pollUntil(kLong, [&] { return isOperational(port(kPort)); }));
      EXPECT_OK(noted.restore(*socket_));
      ASSERT_OK(setUp(*socket_, kOtherPort, true));
      awaitOperational();
      EXPECT_OK(other.restore(*socket_));
      break;
  }
  const bool both = GetParam().loss == Loss::kBothPorts;
  EXPECT_TRUE(both || difference(before, state()) != "") << "nothing was lost";
  EXPECT_OK(noted.restore(*socket_));
  EXPECT_EQ(difference(before, state()), "");
  ASSERT_OK_AND_ASSIGN(const Lines left, noted.missingInWords(*socket_));
  EXPECT_EQ(left, Lines());
}

class ChangedOrderTest : public DressedPortTest {};

TEST_F(ChangedOrderTest, OfRoutesIsToldAndSetRight) {
  host("ip address add 10.1.0.1/24 dev r0");
  host("ip route append 10.90.0.0/16 via 10.1.0.2; ip route append 10.90.0.0/16 via 10.1.0.3");
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  host("ip route del 10.90.0.0/16 via 10.1.0.2; ip route append 10.90.0.0/16 via 10.1.0.2");
  ASSERT_OK_AND_ASSIGN(const Lines words, noted.missingInWords(*socket_));
  EXPECT_THAT(words, Contains("route 10.90.0.0/16 via 10.1.0.2 dev r0, in its place among those "
                              "to the same destination"));
  EXPECT_OK(noted.restore(*socket_));
  EXPECT_EQ(difference(before, state()), "");
}

TEST_F(InterfaceConfigurationTest, WhatCannotBePutBackIsSaidAndTheRestComesBack) {
  const Lines before = state();
  const InterfaceConfiguration noted = note();
  downAndUp();
  host("ip nexthop add id 55 via 10.200.0.2 dev other; ip route add 10.51.0.0/24 dev other");
  const Status status = noted.restore(*socket_);
  EXPECT_EQ(status.code(), Code::kNotRestored);
  EXPECT_THAT(status.message(), HasSubstr("\n  nexthop id 55 via fd01::ff dev r0: "));
  EXPECT_THAT(status.message(), HasSubstr("\n  route 10.51.0.0/24 via 10.50.0.1 dev r0: "));
  EXPECT_THAT(status.message(), HasSubstr("File exists"));
  ASSERT_OK_AND_ASSIGN(const Lines missing, noted.missingInWords(*socket_));
  EXPECT_EQ(missing.size(), 3u) << "the route by the object, too";
  for (const std::string& line : lostOf(before, state())) {
    EXPECT_THAT(line, AnyOf(HasSubstr("id 55 "), HasSubstr("10.51.0.0/24"))) << "was lost, too";
  }
}

TEST_F(InterfaceConfigurationTest, OfALifeThatIsOverNothingIsPutBack) {
  auto json = note().toJson();
  constexpr std::int64_t kSecond = 1'000'000'000;
  json["noted_at_ns"] = json["noted_at_ns"].get<std::int64_t>() - 9500 * kSecond;
  ASSERT_OK_AND_ASSIGN(const auto noted, InterfaceConfiguration::fromJson(json));
  ASSERT_OK(setUp(*socket_, kPort, false));
  host("ip address del 10.1.9.1/24 dev r0");
  ASSERT_OK(setUp(*socket_, kPort, true));
  awaitOperational();
  EXPECT_OK(noted.restore(*socket_));
  const std::string addresses = host("ip address show dev r0; ip -6 route show dev r0");
  EXPECT_THAT(addresses, HasSubstr("10.1.9.1/24"));
  EXPECT_THAT(addresses, ::testing::ContainsRegex("valid_lft (49[0-9]|500)sec preferred_lft 0sec"));
  EXPECT_THAT(addresses, ::testing::Not(HasSubstr("fd95::"))) << "it had 3000 s";
}

TEST_F(InterfaceConfigurationTest, AnInterfaceThatWasMadeAgainGetsAllOfIt) {
  const Lines before = state();
  InterfaceConfiguration noted = note();
  ASSERT_OK(deleteNetDevice(*socket_, kPort));
  constexpr int kNewIndex = 41;
  ASSERT_OK(createVeth(*socket_, {.name = "r0", .ifindex = kNewIndex}, far_->namespaceFd(),
                       {.name = "far0", .ifindex = kFar}));
  host("ip link set r0 mtu 1400; echo 0 >/proc/sys/net/ipv6/conf/r0/accept_dad");
  ASSERT_OK(setUp(*far_, kFar, true));
  ASSERT_OK(setUp(*socket_, kNewIndex, true));
  ASSERT_TRUE(test::pollUntil(kLong, [&] { return isOperational(port(kNewIndex)); }));
  noted.rebind(kNewIndex);
  EXPECT_OK(noted.restore(*socket_));
  Lines now = state();
  Lines then = before;
  for (Lines* const lines : {&now, &then}) {
    // The automatic address has another MAC in it, and interfaces are told by their index.
    std::erase_if(*lines, [](const std::string& line) {
      return line.find("proto kernel_ll") != std::string::npos ||
             line.find("fe80::") != std::string::npos;
    });
    std::sort(lines->begin(), lines->end());
  }
  EXPECT_EQ(difference(then, now), "");
}

}  // namespace
}  // namespace faultline::netlink
