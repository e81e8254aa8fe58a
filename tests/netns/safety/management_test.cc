// Forty ways of aiming at what a machine is reached by, or lives on: each is refused with its
// reason, by the real program, and nothing is changed.
#include "tests/netns/safety/host_fixture.h"

namespace faultline::safety {
namespace {

using faultline::testing::Ran;

struct Way {
  const char* name;
  const char* setup;  ///< d1, d2 and d3 are there, up, and without an address
  const char* target;
  const char* reason;
  const char* keep = "";
  const char* ssh = "";  ///< SSH_CONNECTION
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

/// Whether each is up, and the routes; not what the kernel makes up its mind about by and by.
constexpr const char* kShow = "ip -o link | sed 's/ qdisc.*//'; ip route show table all";

constexpr const char* kDefault = "carries a default route";
constexpr const char* kKeep = "who is to be kept (--keep, or keep in the policy)";
constexpr const char* kSsh = "the client of this ssh session (SSH_CONNECTION)";

#define FOUR "ip addr add 10.1.0.1/24 dev d1; "
#define SIX "ip -6 addr add fd01::1/64 dev d1 nodad; "
#define BRIDGE                                                                          \
  "ip link add br0 type bridge; ip link set d1 master br0; ip link set d2 master br0; " \
  "ip link set br0 up; ip addr add 10.1.0.1/24 dev br0; "
#define MACVLAN \
  "ip link add link d1 name m0 type macvlan; ip link set m0 up; ip addr add 10.1.0.1/24 dev m0; "
#define VLAN                                                                                    \
  "ip link add link d1 name v0 type vlan id 5; ip link set v0 up; ip addr add 10.1.0.1/24 dev " \
  "v0; "
#define BOND                                                                        \
  "ip link add bond0 type bond; ip link set d1 down; ip link set d1 master bond0; " \
  "ip link set d1 up; ip link set bond0 up; ip addr add 10.1.0.1/24 dev bond0; "
#define VRF                                                                              \
  "ip link add vrf0 type vrf table 9; ip link set vrf0 up; ip link set d1 master vrf0; " \
  "ip addr add 10.1.0.1/24 dev d1; "

const std::vector<Way> kWays{
    // Default routes.
    {"default_v4", FOUR "ip route add default via 10.1.0.2", "d1", kDefault},
    {"default_v4_on_link", "ip route add default dev d1", "d1", kDefault},
    {"default_v6", SIX "ip -6 route add default via fd01::2", "d1", kDefault},
    {"default_v6_link_local", "ip -6 route add default via fe80::2 dev d1", "d1", kDefault},
    {"default_of_high_metric",
     FOUR "ip route add default dev d2; ip route add default via 10.1.0.2 metric 900", "d1",
     kDefault},
    {"default_multipath_first",
     FOUR "ip addr add 10.2.0.1/24 dev d2; ip route add default nexthop via 10.1.0.2 nexthop via "
          "10.2.0.2",
     "d1", kDefault},
    {"default_multipath_second",
     FOUR "ip addr add 10.2.0.1/24 dev d2; ip route add default nexthop via 10.1.0.2 nexthop via "
          "10.2.0.2",
     "d2", kDefault},
    {"default_multipath_v6",
     "ip -6 route add default nexthop via fe80::2 dev d1 nexthop via fe80::2 dev d2", "d2",
     kDefault},
    {"default_in_halves",
     FOUR "ip route add 0.0.0.0/1 via 10.1.0.2; ip route add 128.0.0.0/1 dev d2", "d1", kDefault},
    {"default_in_halves_other",
     FOUR "ip route add 0.0.0.0/1 via 10.1.0.2; ip route add 128.0.0.0/1 dev d2", "d2", kDefault},
    {"default_v6_global", "ip -6 route add 2000::/3 via fe80::2 dev d1", "d1", kDefault},
    {"default_of_mark_table",
     FOUR "ip rule add fwmark 1 table 50; ip route add default via 10.1.0.2 table 50", "d1",
     kDefault},
    {"default_of_unruled_table", FOUR "ip route add default via 10.1.0.2 table 51", "d1", kDefault},
    {"default_by_object",
     FOUR "ip nexthop add id 1 via 10.1.0.2 dev d1; ip route add default nhid 1", "d1", kDefault},
    {"default_by_object_alone",
     FOUR "ip nexthop add id 1 via 10.1.0.2 dev d1; ip route add default nhid 1; sysctl -q -w "
          "net.ipv4.nexthop_compat_mode=0",
     "d1", kDefault},
    {"default_by_group_alone",
     FOUR
     "ip nexthop add id 1 via 10.1.0.2 dev d1; ip nexthop add id 2 dev d2; ip nexthop add id 3 "
     "group 1/2; ip route add default nhid 3; sysctl -q -w net.ipv4.nexthop_compat_mode=0",
     "d2", kDefault},
    {"default_v6_by_object_alone",
     "ip -6 nexthop add id 1 via fe80::2 dev d1; ip -6 route add default nhid 1; sysctl -q -w "
     "net.ipv4.nexthop_compat_mode=0",
     "d1", kDefault},
    // By what sits on it, and by what it is made of.
    {"member_of_bridge", BRIDGE "ip route add default via 10.1.0.2", "d1",
     "by way of br0, which sits on it"},
    {"other_member_of_bridge", BRIDGE "ip route add default via 10.1.0.2", "d2",
     "by way of br0, which sits on it"},
    {"bridge", BRIDGE "ip route add default via 10.1.0.2", "br0", kDefault},
    {"bridge_of_needed_member",
     "ip link add br0 type bridge; ip link set br0 up; ip link set d1 master br0; ip route add "
     "default dev d1",
     "br0", "by way of d1, which is a member of it"},
    {"below_macvlan", MACVLAN "ip route add default via 10.1.0.2", "d1",
     "by way of m0, which sits on it"},
    {"macvlan", MACVLAN "ip route add default via 10.1.0.2", "m0", kDefault},
    {"below_macvlan_on_bridge",
     BRIDGE
     "ip link add link br0 name m0 type macvlan; ip link set m0 up; ip route add default dev "
     "m0",
     "d1", "by way of m0, which sits on it"},
    {"below_vlan", VLAN "ip route add default via 10.1.0.2", "d1",
     "by way of v0, which sits on it"},
    {"member_of_bond", BOND "ip route add default via 10.1.0.2", "d1",
     "by way of bond0, which sits on it"},
    {"member_of_vrf", VRF "ip route add default via 10.1.0.2 table 9", "d1", kDefault},
    {"veth_to_bridge_port",
     "ip link add in0 type veth peer name in1; ip link set in0 up; ip link set in1 up; ip link add "
     "br0 type bridge; ip link set br0 up; ip link set in1 master br0; ip route add default dev "
     "in0",
     "in1", "by way of in0, which sits on it"},
    // The way to somebody.
    {"keep_neighbour", FOUR, "d1", kKeep, "10.1.0.7"},
    {"keep_by_route", FOUR "ip route add 10.50.0.0/16 via 10.1.0.2", "d1", kKeep, "10.50.1.1"},
    {"keep_v6", SIX, "d1", kKeep, "fd01::7"},
    {"keep_link_local", "true", "d1", kKeep, "fe80::7%d1"},
    {"keep_mapped", FOUR, "d1", kKeep, "::ffff:10.1.0.7"},
    {"keep_multipath",
     FOUR "ip addr add 10.2.0.1/24 dev d2; ip route add 10.50.0.0/16 nexthop via 10.1.0.2 nexthop "
          "via 10.2.0.2",
     "d2", kKeep, "10.50.1.1"},
    {"keep_by_object",
     FOUR "ip nexthop add id 1 via 10.1.0.2 dev d1; ip route add 10.50.0.0/16 nhid 1; sysctl -q -w "
          "net.ipv4.nexthop_compat_mode=0",
     "d1", kKeep, "10.50.1.1"},
    {"keep_by_rule",
     FOUR "ip rule add to 10.50.0.0/16 table 52; ip route add 10.50.0.0/16 via 10.1.0.2 table 52",
     "d1", kKeep, "10.50.1.1"},
    {"keep_by_bridge", BRIDGE, "d1", "by way of br0, which sits on it", "10.1.0.7"},
    {"ssh_v4", FOUR, "d1", kSsh, "", "10.1.0.7 50000 10.1.0.1 22"},
    {"ssh_v6", SIX, "d1", kSsh, "", "fd01::7 50000 fd01::1 22"},
    {"ssh_link_local", "true", "d1", kSsh, "", "fe80::7%d1 50000 fe80::1%d1 22"},
    {"ssh_by_source_rule",
     FOUR
     "ip addr add 10.2.0.1/24 dev d2; ip rule add from 10.1.0.1 table 53; ip route add default "
     "via 10.1.0.2 table 53; ip route add 203.0.113.0/24 dev d2",
     "d1", kSsh, "", "203.0.113.7 50000 10.1.0.1 22"},
    {"ssh_by_macvlan", MACVLAN, "d1", "by way of m0, which sits on it", "",
     "10.1.0.7 50000 10.1.0.1 22"},
    {"loopback", "true", "lo", "lo is this machine's way to itself"},
};

class ManagementTest : public test::NetnsTest, public ::testing::WithParamInterface<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, ManagementTest, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return std::string(way.param.name); });

TEST_P(ManagementTest, IsRefused) {
  if (!trustedPath("/usr").ok()) GTEST_SKIP() << "a policy must be root's, also outside of here";
  const Way& way = GetParam();
  ASSERT_OK_AND_ASSIGN(const UniqueFd host, netlink::newNamespace());
  ASSERT_OK_AND_ASSIGN(const UniqueFd peer, netlink::newNamespace());
  ASSERT_OK_AND_ASSIGN(netlink::Socket socket, netlink::Socket::open(host.get()));
  ASSERT_OK_AND_ASSIGN(netlink::Socket far, netlink::Socket::open(peer.get()));
  for (const int number : {1, 2, 3}) {
    ASSERT_OK(netlink::createVeth(
        socket, {.name = fmt::format("d{}", number), .ifindex = 10 + number}, peer.get(),
        {.name = fmt::format("far{}", number), .ifindex = 20 + number}));
    ASSERT_OK(netlink::setUp(far, 20 + number, true));
    ASSERT_OK(netlink::setUp(socket, 10 + number, true));
  }
  const auto in = [&](const std::vector<std::string>& words, const char* ssh = "") {
    return Running(words.front(), words, host.get(), ssh).wait();
  };
  const auto shell = [&](const std::string& commands) { return in({"/bin/sh", "-ec", commands}); };
  (void)shell("ip link set lo up");
  const Ran made = shell(way.setup);
  if (made.err.find("Unknown device type") != std::string::npos) {
    GTEST_SKIP() << "this kernel lacks the kind: " << made.err;
  }
  ASSERT_EQ(made.exit, 0) << made.err;
  const testing::TemporaryFolder folder;
  const std::string policy = folder.write(
      "p.yaml",
      "version: 1\nmay_strike: [lo, d1, d2, d3, br0, m0, v0, in1]\nkinds: [port_down]\n"
      "longest: 1s\n");
  const auto strike = [&](const std::string& target) {
    std::vector<std::string> words{std::string(FAULTLINE_BINARY_DIR) + "/faultline",
                                   "inject",
                                   "port_down",
                                   "--target",
                                   target,
                                   "--for",
                                   "20ms",
                                   "--policy",
                                   policy,
                                   "--journal",
                                   (folder.path() / "journal").string()};
    if (*way.keep != '\0') words.insert(words.end(), {"--keep", way.keep});
    return in(words, way.ssh);
  };
  const std::string before = shell(kShow).out;
  const Ran ran = strike(way.target);
  EXPECT_EQ(ran.exit, 3) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr(way.reason));
  EXPECT_EQ(shell(kShow).out, before);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "journal"));
  // What nobody needs may be struck all the same.
  const Ran other = strike("d3");
  EXPECT_EQ(other.exit, 0) << other.out << other.err;
}

TEST(ManagementListTest, HasFortyWays) { EXPECT_GE(kWays.size(), 40u); }

}  // namespace
}  // namespace faultline::safety
