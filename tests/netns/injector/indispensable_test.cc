// Interfaces without which a machine could not be reached: in namespaces that are like one.
#include "injector/netlink/indispensable.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "injector/netlink/address.h"
#include "injector/netlink/namespace.h"
#include "tests/support/netns_fixture.h"

namespace faultline::netlink {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRail = 11;
constexpr int kOtherRail = 12;
constexpr int kUpper = 31;
constexpr int kTop = 32;

const std::vector<NeededPeer> kSession{{"203.0.113.7", "the client of this ssh session", "do so"}};

class IndispensableTest : public test::NetnsTest {
 protected:
  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(const UniqueFd here, newNamespace());
    ASSERT_OK_AND_ASSIGN(const UniqueFd there, newNamespace());
    ASSERT_OK_AND_ASSIGN(Socket socket, Socket::open(here.get()));
    socket_.emplace(std::move(socket));
    ASSERT_OK_AND_ASSIGN(Socket far, Socket::open(there.get()));
    far_.emplace(std::move(far));
    for (const int rail : {kRail, kOtherRail}) {
      // Of the far end, an index that somebody has here: it must not be taken for that one.
      const int far_index = rail == kRail ? kOtherRail + 1 : kRail;
      ASSERT_OK(createVeth(*socket_, {.name = "rail" + std::to_string(rail), .ifindex = rail},
                           there.get(),
                           {.name = "far" + std::to_string(rail), .ifindex = far_index}));
      ASSERT_OK(setUp(*far_, far_index, true));
    }
    for (const int rail : {kRail, kOtherRail}) ASSERT_OK(setUp(*socket_, rail, true));
  }

  /// An interface of this kind on another one; not ok where the kernel does not have the kind.
  Status addOn(int lower, int ifindex, const std::string& kind) {
    ifinfomsg header{};
    header.ifi_index = ifindex;
    Message message(RTM_NEWLINK, kCreateNew, header);
    message.putString(IFLA_IFNAME, kind + std::to_string(ifindex));
    message.put(IFLA_LINK, static_cast<std::uint32_t>(lower));
    message.nest(IFLA_LINKINFO, [&](Message& info) {
      info.putString(IFLA_INFO_KIND, kind);
      if (kind != "vlan") return;
      info.nest(IFLA_INFO_DATA, [](Message& data) { data.put(IFLA_VLAN_ID, std::uint16_t{100}); });
    });
    RETURN_IF_ERROR(socket_->request(std::move(message), "make a " + kind));
    return setUp(*socket_, ifindex, true);
  }

  /// To 203.0.113.0/`bits`; 0: a default route. By all of the interfaces, at once.
  Status addRoute(const std::vector<int>& interfaces, unsigned char bits) {
    rtmsg header{};
    header.rtm_family = AF_INET;
    header.rtm_dst_len = bits;
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_protocol = RTPROT_STATIC;
    header.rtm_scope = RT_SCOPE_LINK;
    header.rtm_type = RTN_UNICAST;
    Message message(RTM_NEWROUTE, kCreateNew, header);
    in_addr network{};
    ::inet_pton(AF_INET, "203.0.113.0", &network);
    if (bits > 0) message.put(RTA_DST, &network, sizeof network);
    if (interfaces.size() == 1) {
      message.put(RTA_OIF, static_cast<std::uint32_t>(interfaces.front()));
    } else {
      std::vector<rtnexthop> hops;
      for (const int ifindex : interfaces) {
        hops.push_back({sizeof(rtnexthop), 0, 0, ifindex});
      }
      message.put(RTA_MULTIPATH, hops.data(), hops.size() * sizeof(rtnexthop));
    }
    return socket_->request(std::move(message), "add a route");
  }

  /// A default route in a table, and a rule that has packets from an address look there.
  Status addTable(std::uint32_t table, int ifindex, const char* from) {
    rtmsg header{};
    header.rtm_family = AF_INET;
    header.rtm_protocol = RTPROT_STATIC;
    header.rtm_scope = RT_SCOPE_LINK;
    header.rtm_type = RTN_UNICAST;
    Message route(RTM_NEWROUTE, kCreateNew, header);
    route.put(RTA_TABLE, table);
    route.put(RTA_OIF, static_cast<std::uint32_t>(ifindex));
    RETURN_IF_ERROR(socket_->request(std::move(route), "add a route"));
    if (from == nullptr) return okStatus();
    in_addr address{};
    ::inet_pton(AF_INET, from, &address);
    fib_rule_hdr its{};
    its.family = AF_INET;
    its.src_len = 32;
    its.action = FR_ACT_TO_TBL;
    Message rule(RTM_NEWRULE, kCreateNew, its);
    rule.put(FRA_TABLE, table);
    rule.put(FRA_SRC, &address, sizeof address);
    return socket_->request(std::move(rule), "add a rule");
  }

  /// Why it is needed; empty: it is not.
  std::string why(int ifindex, const std::vector<NeededPeer>& peers = {}) {
    const auto reason = whyIndispensable(*socket_, ifindex, peers);
    EXPECT_OK(reason.status());
    return reason.ok() ? reason->value_or("") : "";
  }

  std::optional<Socket> socket_;
  std::optional<Socket> far_;
};

TEST_F(IndispensableTest, ANetworkForDataIsNotNeeded) {
  ASSERT_OK(addRoute({kOtherRail}, 24));
  EXPECT_EQ(why(kRail, kSession), "");
  EXPECT_EQ(why(kOtherRail), "") << "nobody is there";
}

TEST_F(IndispensableTest, ADefaultRouteIsNeededOnItsOwnInterface) {
  ASSERT_OK(addRoute({kOtherRail}, 0));
  EXPECT_THAT(why(kOtherRail), HasSubstr("carries a default route: this machine may only be"));
  EXPECT_EQ(why(kRail), "");
}

TEST_F(IndispensableTest, ADefaultRouteOverABridgeNeedsItsPorts) {
  ASSERT_OK(createBridge(*socket_, "br0", kUpper));
  ASSERT_OK(setUp(*socket_, kUpper, true));
  ASSERT_OK(enslave(*socket_, kRail, kUpper));
  ASSERT_OK(addRoute({kUpper}, 0));
  EXPECT_THAT(why(kRail), HasSubstr("carries a default route by way of br0, which sits on it"));
  EXPECT_EQ(why(kOtherRail), "");
}

TEST_F(IndispensableTest, ADefaultRouteOverSomethingOnABridgeNeedsItsPortsToo) {
  ASSERT_OK(createBridge(*socket_, "br0", kUpper));
  ASSERT_OK(setUp(*socket_, kUpper, true));
  ASSERT_OK(enslave(*socket_, kRail, kUpper));
  const Status made = addOn(kUpper, kTop, "macvlan");
  if (!made.ok()) GTEST_SKIP() << "this kernel has no macvlan: " << made.toString();
  ASSERT_OK(addRoute({kTop}, 0));
  EXPECT_THAT(why(kRail), HasSubstr("by way of macvlan32"));
  EXPECT_EQ(why(kOtherRail), "");
}

TEST_F(IndispensableTest, TheWayToTheSshClientIsNeededThroughAVlan) {
  const Status made = addOn(kRail, kUpper, "vlan");
  if (!made.ok()) GTEST_SKIP() << "this kernel has no VLANs: " << made.toString();
  ASSERT_OK(addRoute({kUpper}, 24));
  EXPECT_THAT(why(kRail, kSession), HasSubstr("by way of vlan31"));
  EXPECT_EQ(why(kRail), "");
}

TEST_F(IndispensableTest, TheWayToTheSshClientIsNeededThroughAMacvlan) {
  const Status made = addOn(kRail, kUpper, "macvlan");
  if (!made.ok()) GTEST_SKIP() << "this kernel has no macvlan: " << made.toString();
  ASSERT_OK(addRoute({kUpper}, 24));
  EXPECT_THAT(why(kRail, kSession), HasSubstr("by way of macvlan31"));
  EXPECT_EQ(why(kRail), "");
}

TEST_F(IndispensableTest, TheWayToTheSshClientIsNeededWithoutADefaultRoute) {
  ASSERT_OK(addRoute({kRail}, 24));
  const std::string reason = why(kRail, kSession);
  EXPECT_THAT(reason,
              HasSubstr("carries the way to 203.0.113.7, the client of this ssh session: "));
  EXPECT_THAT(reason, HasSubstr("do so"));
  EXPECT_THAT(reason, Not(HasSubstr("by way of")));
  EXPECT_EQ(why(kOtherRail, kSession), "");
  // As sshd writes an address of IPv4 when it listens to IPv6.
  EXPECT_NE(why(kRail, {{"::ffff:203.0.113.7", "", ""}}), "");
  // Neither of them leads anywhere.
  EXPECT_EQ(why(kRail, {{"2001:db8::1", "", ""}, {"somebody.example", "", ""}}), "");
}

// As each NIC of a routed fabric has one.
TEST_F(IndispensableTest, ADefaultRouteOfATableForSomeSourcesIsNotNeeded) {
  ASSERT_OK(addAddress(*socket_, kRail, "10.0.0.1", 31));
  ASSERT_OK(addTable(100, kRail, "10.0.0.1"));
  EXPECT_EQ(why(kRail), "");
  // A VRF's table has no rule of its own.
  ASSERT_OK(addTable(200, kOtherRail, nullptr));
  EXPECT_THAT(why(kOtherRail), HasSubstr("carries a default route"));
}

TEST_F(IndispensableTest, TheWayToTheSshClientIsThatFromTheSessionsOwnAddress) {
  ASSERT_OK(addAddress(*socket_, kRail, "10.0.0.1", 31));
  ASSERT_OK(addTable(100, kRail, "10.0.0.1"));
  NeededPeer session = kSession.front();
  EXPECT_EQ(why(kRail, {session}), "") << "no route leads there without a source";
  session.from = "10.0.0.1";
  EXPECT_THAT(why(kRail, {session}), HasSubstr("carries the way to 203.0.113.7"));
  EXPECT_EQ(why(kOtherRail, {session}), "");
  EXPECT_THAT(why(kRail, {{"::ffff:203.0.113.7", "", "", "::ffff:10.0.0.1"}}),
              HasSubstr("carries the way"));
  ASSERT_OK(addRoute({kOtherRail}, 24));
  EXPECT_EQ(why(kOtherRail, {session}), "") << "of another source";
  session.from = "10.77.0.1";  // not of this namespace
  EXPECT_THAT(why(kOtherRail, {session}), HasSubstr("carries the way"));
}

TEST_F(IndispensableTest, EachOfSeveralWaysIsNeeded) {
  ASSERT_OK(addRoute({kRail, kOtherRail}, 24));
  EXPECT_NE(why(kRail, kSession), "");
  EXPECT_NE(why(kOtherRail, kSession), "");
}

TEST_F(IndispensableTest, TheScopeOfALinkLocalAddressIsItsInterface) {
  EXPECT_NE(why(kRail, {{"fe80::1%rail11", "", ""}}), "");
  EXPECT_EQ(why(kOtherRail, {{"fe80::1%rail11", "", ""}}), "");
  EXPECT_EQ(why(kRail, {{"fe80::1%none", "", ""}}), "");
}

}  // namespace
}  // namespace faultline::netlink
