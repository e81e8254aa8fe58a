#include "resilient_ccl/fabric/network_snapshot.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>

#include "injector/netlink/namespace.h"
#include "tests/support/netns_shell.h"

namespace faultline::fabric {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::SizeIs;

constexpr std::uint32_t ip(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

/// A node as an administrator has made it.
class NetworkSnapshotTest : public test::NetnsTest {
 protected:
  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(namespace_, netlink::newNamespace());
    test::runInNamespace(namespace_.get(), R"(
      ip link set lo up
      ip link add near type veth peer name far
      ip link add br0 type bridge
      ip link set far master br0
      ip link add idle type bridge
      for link in near far br0; do ip link set $link up; done
      ip addr add 10.9.0.1/16 dev near
      ip addr add 10.9.0.2/16 dev near label near:1
      ip addr add fd00::1/64 dev near nodad
      ip addr add fe80::9/64 dev near nodad
      ip addr add 169.254.3.1/24 dev br0
      echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore
      echo 2 > /proc/sys/net/ipv4/conf/near/arp_ignore
      echo 2 > /proc/sys/net/ipv4/conf/near/rp_filter
      ip rule add from 10.9.0.0/16 table 100
      ip rule add oif near table 1001
      ip rule add iif lo to 10.6.0.0/16 table 102
      ip rule add iif near table 103
      ip rule add from 10.8.0.0/16 prohibit
      ip route add default via 10.9.0.9 dev near table 100
      ip route add 10.7.0.0/16 via 10.9.0.8 dev near table 100
      ip route add 10.6.0.0/16 dev near table 1001
      ip route add blackhole 10.5.0.0/16 table 100
      ip route add 10.4.0.0/16 table 102 nexthop via 10.9.0.8 dev near nexthop dev br0
    )");
    if (HasFatalFailure()) return;
    ASSERT_OK_AND_ASSIGN(const auto inside, netlink::ScopedNamespace::enter(namespace_.get()));
    ASSERT_OK_AND_ASSIGN(network_, readNetwork());
  }
  const NetworkLink& at(const std::string& name) const {
    static const NetworkLink none;
    const NetworkLink* const found = network_.find(name);
    EXPECT_NE(found, nullptr) << name;
    return found == nullptr ? none : *found;
  }
  const NetworkAddress& addressOf(const std::string& device, const std::string& text) const {
    static const NetworkAddress none;
    const auto& all = at(device).addresses;
    const auto found = std::ranges::find(all, text, &NetworkAddress::text);
    EXPECT_NE(found, all.end()) << text;
    return found == all.end() ? none : *found;
  }
  std::vector<NetworkRule> rulesOf(int table) const {
    std::vector<NetworkRule> found;
    std::ranges::copy_if(network_.rules, std::back_inserter(found),
                         [&](const NetworkRule& rule) { return rule.table == table; });
    return found;
  }
  std::vector<NetworkRoute> routesOf(int table) const {
    std::vector<NetworkRoute> found;
    std::ranges::copy_if(network_.routes, std::back_inserter(found),
                         [&](const NetworkRoute& route) { return route.table == table; });
    return found;
  }

  UniqueFd namespace_;
  NetworkSnapshot network_;
};

TEST_F(NetworkSnapshotTest, SaysWhatInterfacesAreAndWhatTheyStandOn) {
  EXPECT_EQ(at("near").kind, "veth");
  EXPECT_EQ(at("near").lower, 0) << "it does not stand on its other end";
  EXPECT_EQ(at("near").master, 0);
  EXPECT_TRUE(at("near").up);
  EXPECT_EQ(at("br0").kind, "bridge");
  EXPECT_TRUE(at("br0").up);
  EXPECT_FALSE(at("idle").up);
  EXPECT_EQ(at("far").master, at("br0").index);
  EXPECT_TRUE(at("lo").loopback);
  EXPECT_EQ(at("lo").kind, "");
}

TEST_F(NetworkSnapshotTest, SaysWhichAddressesComeFirstAndHowFarTheyReach) {
  const NetworkAddress& first = addressOf("near", "10.9.0.1");
  EXPECT_EQ(first.ipv4, ip(10, 9, 0, 1));
  EXPECT_EQ(first.prefix, 16);
  EXPECT_EQ(first.label, "near");
  EXPECT_FALSE(first.secondary);
  EXPECT_FALSE(first.ofItsLink);
  const NetworkAddress& second = addressOf("near", "10.9.0.2");
  EXPECT_EQ(second.label, "near:1");
  EXPECT_TRUE(second.secondary);
  EXPECT_TRUE(addressOf("br0", "169.254.3.1").ofItsLink);
  EXPECT_EQ(addressOf("near", "fd00::1").prefix, 64);
  EXPECT_EQ(addressOf("near", "fd00::1").ipv4, 0u);
  EXPECT_FALSE(addressOf("near", "fd00::1").ofItsLink);
  EXPECT_TRUE(addressOf("near", "fe80::9").ofItsLink);
}

TEST_F(NetworkSnapshotTest, SaysWhatTheKernelMakesOfTheSettings) {
  EXPECT_EQ(at("near").arpIgnore, 2);
  EXPECT_EQ(at("far").arpIgnore, 1) << "of all";
  EXPECT_EQ(at("near").rpFilter, 2);
}

TEST_F(NetworkSnapshotTest, HasTheRulesForWhatIsSentHere) {
  ASSERT_THAT(rulesOf(100), SizeIs(1));
  EXPECT_EQ(rulesOf(100)[0].from, ip(10, 9, 0, 0));
  EXPECT_EQ(rulesOf(100)[0].prefix, 16);
  EXPECT_EQ(rulesOf(100)[0].device, "");
  ASSERT_THAT(rulesOf(1001), SizeIs(1));
  EXPECT_EQ(rulesOf(1001)[0].device, "near");
  EXPECT_EQ(rulesOf(1001)[0].prefix, 0);
  EXPECT_THAT(rulesOf(102), SizeIs(1));
  EXPECT_THAT(rulesOf(103), SizeIs(0)) << "for what arrives";
  constexpr int kMain = 254;
  EXPECT_THAT(rulesOf(kMain), SizeIs(1));
  EXPECT_THAT(network_.rules, ::testing::Not(Contains(Field(&NetworkRule::from, ip(10, 8, 0, 0)))))
      << "it leads nowhere";
}

TEST_F(NetworkSnapshotTest, HasTheRoutesByDevicesAndOneByAGateway) {
  const int near = at("near").index, bridge = at("br0").index;
  ASSERT_THAT(routesOf(100), SizeIs(1)) << "of those by gateways one";
  EXPECT_EQ(routesOf(100)[0].device, near);
  EXPECT_TRUE(routesOf(100)[0].gateway);
  ASSERT_THAT(routesOf(1001), SizeIs(1));
  EXPECT_FALSE(routesOf(1001)[0].gateway);
  EXPECT_EQ(routesOf(1001)[0].to, ip(10, 6, 0, 0));
  EXPECT_EQ(routesOf(1001)[0].prefix, 16);
  const auto routeBy = [](int device, bool gateway) {
    return AllOf(Field(&NetworkRoute::device, device), Field(&NetworkRoute::gateway, gateway),
                 Field(&NetworkRoute::to, ip(10, 4, 0, 0)));
  };
  EXPECT_THAT(routesOf(102),
              ::testing::UnorderedElementsAre(routeBy(near, true), routeBy(bridge, false)));
}

}  // namespace
}  // namespace faultline::fabric
