#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "injector/netlink/counters.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/socket.h"
#include "tests/netns/nccl/plugin_fixture.h"
#include "tests/support/netns_shell.h"

// The plugin in networks as people have them, made with iproute2: routes that are chosen by source,
// devices that are made anew, labels, IPv6, NICs in one subnet, bridges of containers.

namespace faultline::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Two nodes and what is between them: $A, $B and $S for `ip ... netns`.
class NcclPluginNetworkTest : public NcclPluginTest {
 protected:
  static constexpr int kSwitch = 2;

  void makeNetwork() override {
    for (UniqueFd& one : namespaces_) {
      ASSERT_OK_AND_ASSIGN(one, netlink::newNamespace());
    }
    for (int place = 0; place < 3; ++place) run(place, "ip link set lo up");
  }
  int namespaceOf(int node) const override { return namespaces_[node].get(); }

  /// In a node, or in the switch.
  void run(int place, const std::string& commands) {
    runInNamespace(namespaces_[place].get(), commands,
                   {{"A", placeOfNamespace(namespaces_[0].get())},
                    {"B", placeOfNamespace(namespaces_[1].get())},
                    {"S", placeOfNamespace(namespaces_[kSwitch].get())}});
  }
  /// A NIC of a node at a bridge of the switch.
  void plug(int node, const std::string& device, const std::string& bridge,
            const std::string& address) {
    const char name = node == 0 ? 'a' : 'b';
    run(kSwitch, fmt::format("ip link show {0} >/dev/null 2>&1 || ip link add {0} type bridge\n"
                             "ip link set {0} up\n"
                             "ip link add {1}{2} type veth peer name {2} netns ${3}\n"
                             "ip link set {1}{2} master {0} up",
                             bridge, name, device, node == 0 ? 'A' : 'B'));
    run(node,
        fmt::format("ip link set {0} up; {1}", device,
                    address.empty() ? "" : fmt::format("ip addr add {} dev {}", address, device)));
  }
  void plugManagement() {
    for (int node = 0; node < 2; ++node) {
      plug(node, "mgmt0", "brm", fmt::format("10.9.0.{}/24", node + 1));
    }
  }
  /// Each rail a subnet and a bridge of its own.
  void plugAll() {
    plugManagement();
    for (int node = 0; node < 2; ++node) {
      for (int rail = 0; rail < 2; ++rail) {
        plug(node, fmt::format("eth{}", rail), fmt::format("br{}", rail),
             fmt::format("10.0.{}.{}/24", rail, node + 1));
      }
    }
  }
  /// Each rail a link of two addresses to a leaf of its own, which routes; sources have tables.
  void plugLeaves() {
    plugManagement();
    int subnet = 0;
    for (int node = 0; node < 2; ++node) {
      for (int rail = 0; rail < 2; ++rail, ++subnet) {
        run(kSwitch, fmt::format("ip link add leaf{0} type veth peer name eth{1} netns ${2}\n"
                                 "ip addr add 10.0.{0}.0/31 dev leaf{0}; ip link set leaf{0} up",
                                 subnet, rail, node == 0 ? 'A' : 'B'));
        run(node, fmt::format("ip addr add 10.0.{0}.1/31 dev eth{1}; ip link set eth{1} up\n"
                              "ip rule add from 10.0.{0}.1 table 10{1}\n"
                              "ip route add default via 10.0.{0}.0 dev eth{1} table 10{1}",
                              subnet, rail));
      }
    }
    run(kSwitch,
        "echo 1 > /proc/sys/net/ipv4/ip_forward\n"
        "echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter");
  }
  static Variables railNames(Variables more = {}) {
    more.emplace("FAULTLINE_NICS", "eth0,eth1");
    more.emplace("FAULTLINE_MANAGEMENT", "mgmt0");
    return more;
  }
  /// Both sides have talked to the end over all rails.
  void expectWhole(std::size_t count, int failovers = 0) {
    for (int side = 0; side < 2; ++side) {
      const std::string word = lastWord(side);
      ASSERT_THAT(word, StartsWith("ok "));
      // The network of management, which a test takes away, may be named.
      EXPECT_THAT(word, Not(ContainsRegex("\\(eth[01]\\) to [^ ]+ \\([^)]*\\) carries no")));
      const nlohmann::json told = counters(side), peer = told["peers"][0];
      EXPECT_EQ(told["rails"].size(), count);
      EXPECT_EQ(peer["failovers"], failovers) << peer;
      EXPECT_EQ(peer["failure"], "");
      for (const nlohmann::json& bytes : peer["bytes_sent_by_rail"])
        EXPECT_GT(bytes, 200'000) << peer;
    }
  }
  void expectRefused(const Variables& environment, const ::testing::Matcher<std::string>& why) {
    spawnPeers({}, {environment, environment});
    for (int side = 0; side < 2; ++side) {
      EXPECT_THAT(lastWord(side), AllOf(StartsWith("error "), why));
    }
  }
  /// Longer than the budget.
  void talkWithoutManagement() {
    startPeers({.seconds = 60}, railNames({{"FAULTLINE_GIVE_UP", "2s"}}));
    awaitSent("eth0");
    run(kSwitch, "ip link set brm down");
    const TimePoint until = now() + 3s;
    EXPECT_TRUE(pollUntil(kLong, [&] { return now() >= until; }));
    awaitSent("eth0");
    awaitSent("eth1");
    stopTalk();
    expectWhole(2);
  }
  void stopTalk() { std::ofstream(folder_ / "stop"); }
  /// Bytes that a device of node 0 has sent.
  Bytes sent(const std::string& device) {
    auto socket = netlink::Socket::open(namespaces_[0].get());
    if (!socket.ok()) return 0;
    const auto links = netlink::listNetDevices(*socket);
    if (!links.ok()) return 0;
    for (const netlink::NetDevice& link : *links) {
      if (link.name != device) continue;
      const auto counters = netlink::readCounters(*socket, link.ifindex);
      return counters.ok() ? static_cast<Bytes>(counters->tx_bytes) : 0;
    }
    return 0;
  }
  void awaitSent(const std::string& device, Bytes more = 1'000'000) {
    const Bytes enough = sent(device) + more;
    EXPECT_TRUE(pollUntil(kLong, [&] { return sent(device) >= enough; })) << device;
  }

  std::array<UniqueFd, 3> namespaces_;
};

// Without the network of management datagrams of the rails are all that keeps a job alive.
TEST_F(NcclPluginNetworkTest, RoutesThatAreChosenBySourceCarryAJobWithoutManagement) {
  plugLeaves();
  talkWithoutManagement();
}

TEST_F(NcclPluginNetworkTest, AStrictReversePathFilterGoesWithSuchRoutes) {
  plugLeaves();
  for (int node = 0; node < 2; ++node) {
    run(node, "for i in all eth0 eth1; do echo 1 > /proc/sys/net/ipv4/conf/$i/rp_filter; done");
  }
  talkWithoutManagement();
}

TEST_F(NcclPluginNetworkTest, ANodeWithoutARouteForTheAddressOfARailIsToldSo) {
  plugLeaves();
  run(1, "ip rule del from 10.0.3.1");
  startPeers({.seconds = 1}, railNames());
  const std::string here = lastWord(0), there = lastWord(1);
  EXPECT_THAT(here, AllOf(StartsWith("ok "), Not(HasSubstr("no route"))));
  EXPECT_THAT(there,
              AllOf(StartsWith("ok "),
                    HasSubstr("this node has no route from 10.0.3.1 to 10.0.1.1 over eth1"),
                    HasSubstr("no `ip rule` leads to table 101, which has one"),
                    HasSubstr("ip rule add from 10.0.3.1 table 101"), Not(HasSubstr("over eth0"))));
}

TEST_F(NcclPluginNetworkTest, ARailThatDropsDatagramsIsNamedAtBothEndsAndTheJobGoesOn) {
  plugAll();
  // Of what leaves, UDP: byte 23 of a frame is IPv4's protocol.
  run(1,
      "tc qdisc add dev eth1 clsact; tc filter add dev eth1 egress bpf da bytecode "
      "'4,48 0 0 23,21 0 1 17,6 0 0 2,6 0 0 4294967295'");
  startPeers({.seconds = 2}, railNames());
  const std::array<std::string, 2> direction{"the other end sends", "this end sends"};
  for (int side = 0; side < 2; ++side) {
    EXPECT_THAT(lastWord(side),
                AllOf(StartsWith("ok "), HasSubstr("rail 1 (eth1) to "),
                      HasSubstr("carries no datagrams"), HasSubstr(direction[side] + " arrives"),
                      HasSubstr("ip route get"), Not(HasSubstr("rail 0 (eth0) to "))));
  }
}

TEST_F(NcclPluginNetworkTest, ADeviceThatIsMadeAnewIsTakenBack) {
  plugAll();
  startPeers({.seconds = 60}, railNames());
  awaitSent("eth1");
  run(0, "ip link del eth1");
  awaitSent("eth0");
  plug(0, "eth1", "br1", "10.0.1.1/24");
  awaitSent("eth1");
  stopTalk();
  expectWhole(2, 1);
}

TEST_F(NcclPluginNetworkTest, ADeviceThatComesWithAnotherNameIsTakenBackByItsAddress) {
  plugAll();
  startPeers({.seconds = 60}, railNames());
  awaitSent("eth1");
  run(0, "ip link del eth1");
  plug(0, "net7", "br1", "10.0.1.1/24");
  awaitSent("net7");
  stopTalk();
  expectWhole(2, 1);
}

TEST_F(NcclPluginNetworkTest, ADeviceThatIsRenamedIsFollowed) {
  plugAll();
  startPeers({.seconds = 60}, railNames());
  awaitSent("eth1");
  run(0, "ip link set eth1 down; ip link set eth1 name net1; ip link set net1 up");
  awaitSent("net1");
  stopTalk();
  expectWhole(2, 1);
}

TEST_F(NcclPluginNetworkTest, OfDevicesThatSwapTheirNamesThePresentOnesAreSaid) {
  plugAll();
  startPeers({.seconds = 60}, railNames({{"NET_PEER_INFORMATION", "1"}}));
  awaitSent("eth0");
  awaitSent("eth1");
  run(0,
      "for i in eth0 eth1; do ip link set $i down; done\n"
      "ip link set eth0 name was0; ip link set eth1 name eth0; ip link set was0 name eth1\n"
      "for i in eth0 eth1; do ip link set $i up; done");
  awaitSent("eth0");
  awaitSent("eth1");
  stopTalk();
  const std::string words = lastWord(0);
  EXPECT_THAT(words, AllOf(StartsWith("ok "), HasSubstr("rail 0 (eth1, eth0 at the start) to "),
                           HasSubstr("rail 1 (eth0, eth1 at the start) to ")));
  const nlohmann::json rails = counters(0)["rails"];
  EXPECT_EQ(rails[0]["name"], "eth1");
  EXPECT_EQ(rails[0]["name_at_start"], "eth0");
  EXPECT_EQ(rails[1]["name"], "eth0");
}

TEST_F(NcclPluginNetworkTest, RailsInAnotherOrderAreNamedWhenTheNodesMeet) {
  plugAll();
  Variables crossed = railNames({{"FAULTLINE_GIVE_UP", "1s"}});
  const Variables inOrder = crossed;
  crossed["FAULTLINE_NICS"] = "eth1,eth0";
  spawnPeers({}, {inOrder, crossed});
  for (int side = 0; side < 2; ++side) {
    const std::string words = lastWord(side);
    EXPECT_THAT(words, AllOf(HasSubstr("names its rails in another order"),
                             HasSubstr(fmt::format("its rail 0 (10.0.{}.{}) is in the subnet of "
                                                   "this node's rail 1 (eth{})",
                                                   1 - side, 2 - side, 1 - side)),
                             HasSubstr("FAULTLINE_NICS")));
    // At the meeting, before a rail is given up.
    EXPECT_LT(words.find("names its rails in another order"), words.find("no rail to "));
  }
}

TEST_F(NcclPluginNetworkTest, ALabelIsNoDevice) {
  plugAll();
  for (int node = 0; node < 2; ++node) {
    run(node, fmt::format("ip addr add 10.0.0.10{}/24 dev eth0 label eth0:1", node + 1));
  }
  startPeers({.seconds = 0.5}, {{"FAULTLINE_NICS", "none"}, {"NCCL_SOCKET_IFNAME", "eth"}});
  expectWhole(2);
}

TEST_F(NcclPluginNetworkTest, ALabelCanBeNamedAndAListMayHaveBlanks) {
  plugAll();
  for (int node = 0; node < 2; ++node) {
    run(node, fmt::format("ip addr add 10.0.0.10{}/24 dev eth0 label eth0:1", node + 1));
  }
  startPeers({.seconds = 0.5}, railNames({{"FAULTLINE_NICS", "eth0:1, eth1"}}));
  expectWhole(2);
}

TEST_F(NcclPluginNetworkTest, AHostWithIpv6AloneIsRefusedWithTheWayOut) {
  for (int node = 0; node < 2; ++node) {
    plug(node, "eth0", "br0", "");
    run(node, fmt::format("ip addr add fd00::{}/64 dev eth0 nodad", node + 1));
  }
  expectRefused({{"FAULTLINE_NICS", "none"}},
                AllOf(HasSubstr("eth0 has the IPv6 address fd00::"), HasSubstr("ip addr add")));
  expectRefused({{"FAULTLINE_NICS", "eth0"}},
                AllOf(HasSubstr("FAULTLINE_NICS names eth0"), HasSubstr("IPv6 address fd00::")));
}

TEST_F(NcclPluginNetworkTest, NicsInOneSubnetAreRefusedUntilTheyAnswerForThemselvesAlone) {
  plugManagement();
  for (int node = 0; node < 2; ++node) {
    for (int rail = 0; rail < 2; ++rail) {
      plug(node, fmt::format("eth{}", rail), "br0", fmt::format("10.0.0.{}{}/24", node + 1, rail));
    }
  }
  expectRefused(railNames(),
                AllOf(HasSubstr("eth0, eth1: both are in 10.0.0.0/24"), HasSubstr("arp_ignore=1")));
  for (int node = 0; node < 2; ++node) {
    run(node,
        "echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore\n"
        "echo 2 > /proc/sys/net/ipv4/conf/all/arp_announce\n"
        "for i in all eth0 eth1; do echo 2 > /proc/sys/net/ipv4/conf/$i/rp_filter; done");
  }
  startPeers({.seconds = 1}, railNames());
  expectWhole(2);
}

TEST_F(NcclPluginNetworkTest, BridgesOfContainersAreLeftOutAndRefusedByName) {
  plugAll();
  for (int node = 0; node < 2; ++node) {
    run(node,
        "ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0\n"
        "ip link set docker0 up");
  }
  const Variables named = railNames({{"FAULTLINE_NICS", "eth0,docker0"}});
  spawnPeers({}, {named, named});
  EXPECT_THAT(lastWord(0) + lastWord(1),
              AllOf(HasSubstr("error "), HasSubstr("the address 172.17.0.1 of this node's rail 1 "
                                                   "(docker0) as well")));
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directory(folder_);
  startPeers({.seconds = 0.5}, {{"FAULTLINE_NICS", "none"}});
  expectWhole(3);  // eth0, eth1 and mgmt0
}

/// On both nodes a bridge of containers with a name of its own, before all other interfaces.
class NcclPluginBridgeTest : public NcclPluginNetworkTest {
 protected:
  void makeNetwork() override {
    NcclPluginNetworkTest::makeNetwork();
    for (int node = 0; node < 2; ++node) {
      run(node,
          "ip link add mybr0 type bridge; ip addr add 172.18.0.1/16 dev mybr0\n"
          "ip link add port type veth peer name guest; ip link set port master mybr0\n"
          "for i in mybr0 port guest; do ip link set $i up; done");
    }
    plugAll();
  }
};

TEST_F(NcclPluginBridgeTest, IsLeftOutWhateverItsName) {
  startPeers({.seconds = 0.5}, {{"FAULTLINE_NICS", "eth0,eth1"}});
  expectWhole(2);
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directory(folder_);
  startPeers({.seconds = 0.5}, {{"FAULTLINE_NICS", "none"}, {"NCCL_SOCKET_IFNAME", "^docker"}});
  expectWhole(3);  // eth0, eth1 and mgmt0
}

TEST_F(NcclPluginBridgeTest, AnAddressOfManagementThatBothNodesHaveIsNamedWithTheCure) {
  for (const auto& [variable, device] : {std::pair{"FAULTLINE_MANAGEMENT", "mybr0"},
                                         {"FAULTLINE_MANAGEMENT", "lo"},
                                         {"NCCL_SOCKET_IFNAME", "lo"}}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    const Variables environment{
        {"FAULTLINE_NICS", "eth0,eth1"}, {"FAULTLINE_GIVE_UP", "1s"}, {variable, device}};
    spawnPeers({}, {environment, environment});
    const std::string words = lastWord(0) + lastWord(1);
    EXPECT_THAT(words, AllOf(HasSubstr("error "), HasSubstr("is on another node, and its address "),
                             HasSubstr("FAULTLINE_MANAGEMENT"), HasSubstr("carries management")))
        << variable << "=" << device;
  }
}

/// Short datagrams and long segments that the sender's kernel leaves in one piece pass a port of
/// the switch; frames of 9000 bytes do not.
class NcclPluginFrameTest : public NcclPluginNetworkTest,
                            public ::testing::WithParamInterface<int> {
 protected:
  void makeNetwork() override {
    NcclPluginNetworkTest::makeNetwork();
    plugAll();
    for (int node = 0; node < 2; ++node) run(node, "ip link set eth1 mtu 9000");
  }
  /// How often a rail was given up that had been connected. On a busy machine one can be late at
  /// the start: the job begins without it, which counts as a failover that has nothing to send
  /// again, and takes it when it opens.
  int timesGivenUp(int side) const {
    std::istringstream lines(railEvents(side));
    std::vector<nlohmann::json> events;
    for (std::string line; std::getline(lines, line);) {
      events.push_back(nlohmann::json::parse(line));
    }
    const bool late = events.size() >= 2 && events[0]["name"] == "failed_over" &&
                      events[0]["args"]["bytes_resent"] == 0 && events[1]["name"] == "rail_up";
    return static_cast<int>(
        std::count_if(events.begin() + (late ? 2 : 0), events.end(),
                      [](const nlohmann::json& event) { return event["name"] == "failed_over"; }));
  }
};

TEST_P(NcclPluginFrameTest, TooLongForAPortOfThePathAreNamedAndTheirRailIsGivenUpOnce) {
  // The rail that fails comes first.
  startPeers(
      {.seconds = 2, .bytes = GetParam()},
      railNames({{"FAULTLINE_NICS", "eth1,eth0"}, {"FAULTLINE_NET_STRATEGY", "hot_repair"}}));
  for (int side = 0; side < 2; ++side) {
    EXPECT_THAT(lastWord(side),
                AllOf(StartsWith("ok "), HasSubstr("rail 0 (eth1) to "),
                      HasSubstr("datagrams of 8972 bytes are lost"), Not(HasSubstr("is back"))));
    EXPECT_EQ(timesGivenUp(side), 1) << railEvents(side);
  }
}

INSTANTIATE_TEST_SUITE_P(MessagesOf, NcclPluginFrameTest, ::testing::Values(30'000, 1'000'000),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace faultline::test
