#include "resilient_ccl/fabric/network_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Snapshots of networks as people have them; most of these interfaces cannot be made on the
// machines that run the tests (bonds, VLANs, VRFs, InfiniBand).

namespace faultline::fabric {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint32_t ip(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

NetworkAddress four(std::string text, std::uint32_t address, int prefix = 24,
                    std::string label = {}) {
  return {.text = std::move(text),
          .ipv4 = address,
          .prefix = prefix,
          .label = std::move(label),
          .ofItsLink = address >> 16 == 0xa9fe};
}
NetworkAddress six(std::string text, bool ofItsLink = false) {
  return {.text = std::move(text), .prefix = 64, .ofItsLink = ofItsLink};
}

const UsedNic kManagement{"mgmt0", ip(10, 9, 0, 1)};

class NetworkFindingsTest : public ::testing::Test {
 protected:
  NetworkFindingsTest() {
    link({.index = 1, .name = "lo", .up = true, .loopback = true}).addresses = {
        four("127.0.0.1", ip(127, 0, 0, 1), 8)};
    link({.index = 2, .name = "mgmt0", .up = true}).addresses = {four("10.9.0.1", ip(10, 9, 0, 1))};
    rail(3, "eth0", four("10.0.0.1", ip(10, 0, 0, 1)));
    rail(4, "eth1", four("10.0.1.1", ip(10, 0, 1, 1)));
  }

  NetworkLink& link(NetworkLink link) { return network_.links.emplace_back(std::move(link)); }
  NetworkLink& rail(int index, const std::string& name, NetworkAddress address) {
    NetworkLink& made = link({.index = index, .name = name, .up = true});
    made.addresses = {std::move(address)};
    return made;
  }
  NetworkLink& at(const std::string& name) {
    return *std::ranges::find(network_.links, name, &NetworkLink::name);
  }
  std::vector<NetworkFinding> judge(const std::vector<std::string>& rails = {"eth0", "eth1"}) {
    std::vector<UsedNic> used;
    for (const std::string& name : rails) used.push_back({name, at(name).addresses.front().ipv4});
    return judgeNetwork(network_, used, kManagement);
  }
  NetworkSnapshot network_;
};

TEST_F(NetworkFindingsTest, OfRailsWithASubnetEachNothingIsToBeSaid) {
  EXPECT_THAT(judge(), IsEmpty());
}

TEST_F(NetworkFindingsTest, RailsToRoutingLeavesAreFine) {
  at("eth0").addresses = {four("10.0.0.1", ip(10, 0, 0, 1), 31)};
  at("eth1").addresses = {four("10.0.0.3", ip(10, 0, 0, 3), 31)};
  network_.rules = {{ip(10, 0, 0, 1), 32}, {ip(10, 0, 0, 3), 32}};
  EXPECT_THAT(judge(), IsEmpty());
}

TEST_F(NetworkFindingsTest, ARailWhosePacketsDoNotComeToItsTableIsNamedWithTheRule) {
  at("eth0").addresses = {four("10.0.0.1", ip(10, 0, 0, 1), 31)};
  at("eth1").addresses = {four("10.0.1.1", ip(10, 0, 1, 1), 31)};
  network_.rules = {{.table = 254},
                    {.from = ip(10, 0, 0, 1), .prefix = 32, .table = 100},
                    {.from = ip(10, 0, 1, 1), .prefix = 32, .table = 101}};
  network_.routes = {{.table = 254, .device = 3, .to = ip(10, 0, 0, 0), .prefix = 31},
                     {.table = 254, .device = 4, .to = ip(10, 0, 1, 0), .prefix = 31},
                     {.table = 100, .device = 3, .gateway = true},
                     {.table = 101, .device = 4, .gateway = true}};
  EXPECT_THAT(judge(), IsEmpty());
  network_.rules.pop_back();
  auto found = judge();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].subject, "eth1");
  EXPECT_FALSE(found[0].refused);
  EXPECT_THAT(found[0].cause,
              HasSubstr("no route from 10.0.1.1 over eth1 leads beyond 10.0.1.0/31"));
  EXPECT_EQ(found[0].cure, "ip rule add from 10.0.1.1 table 101");
  network_.rules.push_back({.table = 101, .device = "eth1"});
  EXPECT_THAT(judge(), IsEmpty()) << "by the device that its sockets are bound to";
  network_.rules.back().device = "eth0";
  EXPECT_THAT(judge(), SizeIs(1));
  network_.routes.pop_back();
  found = judge();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].cause, HasSubstr("as those of other rails do"));
  EXPECT_THAT(found[0].cure, HasSubstr("ip route add default via GATEWAY dev eth1"));
  network_.rules.resize(1);
  network_.routes.resize(2);
  EXPECT_THAT(judge(), IsEmpty()) << "two ends of one cable need no route";
}

TEST_F(NetworkFindingsTest, OneRailWithTheDefaultRouteOfTheNodeIsNoFault) {
  network_.rules = {{.table = 254}};
  network_.routes = {{.table = 254, .device = 3, .gateway = true},
                     {.table = 254, .device = 4, .to = ip(10, 0, 1, 0), .prefix = 24}};
  EXPECT_THAT(judge(), IsEmpty());
}

TEST_F(NetworkFindingsTest, TwoRailsInOneSubnetThatAnswerForEachOtherAreRefused) {
  at("eth1").addresses = {four("10.0.0.3", ip(10, 0, 0, 3))};
  const auto found = judge();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_TRUE(found[0].refused);
  EXPECT_EQ(found[0].subject, "eth0, eth1");
  EXPECT_THAT(found[0].cause, AllOf(HasSubstr("10.0.0.0/24"), HasSubstr("arp_ignore is 0")));
  EXPECT_THAT(found[0].cure, AllOf(HasSubstr("arp_ignore=1"), HasSubstr("FAULTLINE_NICS")));
  at("eth0").arpIgnore = 1;
  EXPECT_THAT(judge(), SizeIs(1)) << "the other one answers still";
  at("eth1").arpIgnore = 2;
  EXPECT_THAT(judge(), IsEmpty());
}

TEST_F(NetworkFindingsTest, InOneSubnetAStrictFilterWantsATableForEachSource) {
  at("eth1").addresses = {four("10.0.0.3", ip(10, 0, 0, 3))};
  for (const char* name : {"eth0", "eth1"}) at(name).arpIgnore = at(name).rpFilter = 1;
  const auto found = judge();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_TRUE(found[0].refused);
  EXPECT_THAT(found[0].cause, HasSubstr("rp_filter is 1"));
  network_.rules = {{ip(10, 0, 0, 1), 32}, {ip(10, 0, 0, 2), 31}};
  EXPECT_THAT(judge(), IsEmpty());
  network_.rules.clear();
  for (const char* name : {"eth0", "eth1"}) at(name).rpFilter = 2;
  EXPECT_THAT(judge(), IsEmpty());
}

TEST_F(NetworkFindingsTest, TwoVlansOnOneCardShareItsFate) {
  link({.index = 5, .name = "eth0.7", .kind = "vlan", .lower = 3, .up = true}).addresses = {
      four("10.7.0.1", ip(10, 7, 0, 1))};
  link({.index = 6, .name = "eth0.8", .kind = "vlan", .lower = 3, .up = true}).addresses = {
      four("10.8.0.1", ip(10, 8, 0, 1))};
  const auto found = judge({"eth0.7", "eth0.8"});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_FALSE(found[0].refused);
  EXPECT_EQ(found[0].cause, "both stand on eth0");
  EXPECT_THAT(judge({"eth0.7", "eth1"}), IsEmpty()) << "a VLAN of its own card is a rail";
}

TEST_F(NetworkFindingsTest, ABondIsOneRail) {
  link({.index = 5, .name = "bond0", .kind = "bond", .up = true}).addresses = {
      four("10.5.0.1", ip(10, 5, 0, 1))};
  for (int i = 6; i < 8; ++i) {
    link({.index = i, .name = "eth" + std::to_string(i), .master = 5, .up = true});
  }
  const auto found = judge({"bond0", "eth1"});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].cause, HasSubstr("a bond of 2 ports"));
  EXPECT_THAT(found[0].cure, HasSubstr("take the bond apart"));
  link({.index = 9, .name = "bond0.7", .kind = "vlan", .lower = 5, .up = true}).addresses = {
      four("10.7.0.1", ip(10, 7, 0, 1))};
  ASSERT_THAT(judge({"bond0.7"}), SizeIs(1));
  EXPECT_THAT(judge({"bond0.7"})[0].cause, HasSubstr("bond0, a bond of 2 ports"));
}

TEST_F(NetworkFindingsTest, SeveralAddressesAndLabelsAreNamed) {
  at("eth0").addresses.push_back(four("10.0.0.101", ip(10, 0, 0, 101), 24, "eth0:1"));
  at("eth0").addresses.push_back(four("192.168.0.5", ip(192, 168, 0, 5), 24, "eth0"));
  const auto found = judge();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].cause, AllOf(HasSubstr("10.0.0.101 (eth0:1)"), HasSubstr("192.168.0.5"),
                                    Not(HasSubstr("(eth0)"))));
}

TEST_F(NetworkFindingsTest, LinkLocalAddressesReachTheirLink) {
  at("eth0").addresses = {four("169.254.3.1", ip(169, 254, 3, 1), 16)};
  const auto found = judge();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].cause, HasSubstr("169.254.3.1"));
  EXPECT_FALSE(found[0].refused);
}

TEST_F(NetworkFindingsTest, ADockerBridgeReachesNobody) {
  link({.index = 5, .name = "docker0", .kind = "bridge", .up = true}).addresses = {
      four("172.17.0.1", ip(172, 17, 0, 1), 16)};
  const auto found = judge({"eth0", "docker0"});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].cause, HasSubstr("bridge of containers"));
  // A bridge over a port of the network is the host's own.
  link({.index = 6, .name = "br0", .kind = "bridge", .up = true}).addresses = {
      four("10.6.0.1", ip(10, 6, 0, 1))};
  link({.index = 7, .name = "eth7", .master = 6, .up = true});
  EXPECT_THAT(judge({"eth0", "br0"}), IsEmpty());
}

TEST_F(NetworkFindingsTest, ABridgeWithoutAPortThatLeadsElsewhereIsOneOfContainersWhateverItsName) {
  link({.index = 5, .name = "mybr0", .kind = "bridge", .up = true}).addresses = {
      four("172.18.0.1", ip(172, 18, 0, 1), 16)};
  for (const char* kind : {"", "veth", "tun"}) {
    if (*kind != 0) link({.index = 6, .name = "port6", .kind = kind, .master = 5, .up = true});
    const auto rail = judge({"eth0", "mybr0"});
    ASSERT_THAT(rail, SizeIs(1)) << kind;
    EXPECT_THAT(rail[0].cause, HasSubstr("bridge of containers"));
    EXPECT_TRUE(rail[0].severe);
    const auto management =
        judgeNetwork(network_, {{"eth0", ip(10, 0, 0, 1)}}, {"mybr0", ip(172, 18, 0, 1)});
    ASSERT_THAT(management, SizeIs(1)) << kind;
    EXPECT_THAT(management[0].cause, HasSubstr("carries management, and is a bridge of"));
    EXPECT_THAT(management[0].cure, HasSubstr("FAULTLINE_MANAGEMENT"));
    EXPECT_TRUE(management[0].severe);
  }
  for (const char* kind : {"", "bond", "vlan", "vxlan"}) {
    link({.index = 7, .name = "port7", .kind = kind, .master = 5, .up = true});
    EXPECT_THAT(judge({"eth0", "mybr0"}), IsEmpty()) << kind;
    network_.links.pop_back();
  }
}

TEST_F(NetworkFindingsTest, ManagementOnTheLoopbackIsSaidUnlessAllRailsAreThere) {
  const UsedNic lo{"lo", ip(127, 0, 0, 1)};
  const auto found = judgeNetwork(network_, {{"eth0", ip(10, 0, 0, 1)}}, lo);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].cause, HasSubstr("is the loopback interface"));
  EXPECT_TRUE(found[0].severe);
  EXPECT_THAT(judgeNetwork(network_, {lo}, lo), SizeIs(1));  // of the rail
}

TEST_F(NetworkFindingsTest, IpoibIsTcpOverInfiniband) {
  link({.index = 5, .name = "ib0", .up = true, .infiniband = true}).addresses = {
      four("10.5.0.1", ip(10, 5, 0, 1))};
  ASSERT_THAT(judge({"eth0", "ib0"}), SizeIs(1));
  EXPECT_THAT(judge({"eth0", "ib0"})[0].cause, HasSubstr("IPoIB"));
  link({.index = 6, .name = "ipv0", .kind = "ipvlan", .lower = 5, .up = true}).addresses = {
      four("10.6.0.1", ip(10, 6, 0, 1))};
  ASSERT_THAT(judge({"eth0", "ipv0"}), SizeIs(1));
  EXPECT_THAT(judge({"eth0", "ipv0"})[0].cause, HasSubstr("IPoIB")) << "what it stands on is";
}

TEST_F(NetworkFindingsTest, ManagementInAVrfIsForProcessesInIt) {
  link({.index = 5, .name = "vrf-mgmt", .kind = "vrf", .up = true});
  at("mgmt0").master = 5;
  at("eth0").master = 5;  // rails are bound to their device, which is all it takes
  const auto found = judge();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].subject, "mgmt0");
  EXPECT_THAT(found[0].cure, HasSubstr("ip vrf exec vrf-mgmt"));
}

TEST_F(NetworkFindingsTest, AnInterfaceWithIpv6AloneIsNamed) {
  link({.index = 5, .name = "eth2", .up = true}).addresses = {six("fe80::1", true), six("fd00::1")};
  link({.index = 6, .name = "eth3", .up = true}).addresses = {six("fe80::2", true)};
  const auto found = judge();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].subject, "eth2");
  EXPECT_THAT(found[0].cause, HasSubstr("fd00::1"));
  EXPECT_THAT(found[0].cure, HasSubstr("ip addr add"));
}

TEST_F(NetworkFindingsTest, OfIpv6AloneNothingIsSaidWhereNobodyMissesARail) {
  at("lo").addresses = {six("::1")};
  link({.index = 5, .name = "down0"}).addresses = {six("fd00::1")};
  EXPECT_THAT(judge(), IsEmpty());
  at("eth1").addresses = {six("fd00::2")};  // its address of IPv4 has just been taken away
  EXPECT_THAT(judge(), IsEmpty()) << "it is a rail";
}

TEST_F(NetworkFindingsTest, LoopbackAsARailIsSaid) {
  ASSERT_THAT(judge({"lo"}), SizeIs(1));
  EXPECT_THAT(judge({"lo"})[0].cause, HasSubstr("loopback"));
}

TEST(ContainerBridgeTest, IsKnownByItsName) {
  for (const char* name : {"docker0", "docker_gwbridge", "br-0123456789ab", "virbr0", "podman1",
                           "cni0", "lxcbr0", "lxdbr0"}) {
    EXPECT_TRUE(isNameOfContainerBridge(name)) << name;
  }
  for (const char* name :
       {"br0", "br-0123", "br-storage-net1", "br-0123456789abc", "eth0", "bond0"}) {
    EXPECT_FALSE(isNameOfContainerBridge(name)) << name;
  }
}

}  // namespace
}  // namespace faultline::fabric
