#include "harness/site/hosts/choose_rails.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace faultline::hosts {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using wire::HostFacts;
using wire::HostPort;

constexpr BitsPerSecond kGigabit = 1'000'000'000;

HostPort port(const std::string& name, const std::string& address, BitsPerSecond speed,
              const std::string& pci = "") {
  return {.name = name,
          .kind = "",
          .link = "ether",
          .addresses = {address},
          .up = true,
          .carrier = true,
          .mtu = 9000,
          .speed = speed,
          .pci = pci,
          .rdma = ""};
}

HostPort loopback() {
  HostPort lo = port("lo", "127.0.0.1/8", 0);
  lo.link = "loopback";
  return lo;
}

/// Reached by eth0; eth1 and eth2 of 100 Gbit/s, eth3 of 25.
HostFacts host(int number) {
  const auto address = [&](int net) { return fmt::format("10.{}.0.{}/24", net, number); };
  HostFacts facts;
  facts.hostname = fmt::format("h{}", number);
  facts.reachedAt = fmt::format("10.0.0.{}", number);
  facts.defaultRoute = "eth0";
  facts.ports = {loopback(), port("eth0", address(0), kGigabit),
                 port("eth3", address(3), 25 * kGigabit, "0000:01:00.0"),
                 port("eth2", address(2), 100 * kGigabit, "0000:3c:00.0"),
                 port("eth1", address(1), 100 * kGigabit, "0000:3b:00.0")};
  return facts;
}

HostPort& portOf(HostFacts& facts, const std::string& name) {
  for (HostPort& one : facts.ports) {
    if (one.name == name) return one;
  }
  throw std::runtime_error("no port " + name);
}

HostsSpec automatic() {
  HostsSpec spec;
  spec.names = {"a", "b"};
  spec.railChoice.automatic = true;
  return spec;
}

std::vector<std::string> railsOf(const Choice& choice, std::size_t host) {
  std::vector<std::string> names;
  for (const site::Nic& nic : choice.network[host].rails) {
    names.push_back(nic.interface + " " + nic.address);
  }
  return names;
}

class ChooseRailsTest : public ::testing::Test {
 protected:
  Choice chosen() {
    const auto choice = chooseRails(spec_, facts_);
    if (!choice.ok()) throw std::runtime_error(choice.status().message());
    return *choice;
  }
  std::string whyNot() {
    const auto choice = chooseRails(spec_, facts_);
    return choice.ok() ? "" : choice.status().message();
  }
  HostsSpec spec_ = automatic();
  std::vector<HostFacts> facts_{host(1), host(2)};
};

TEST_F(ChooseRailsTest, TheFastestInTheOrderOfTheirPlacesOnTheBus) {
  const Choice choice = chosen();
  EXPECT_THAT(railsOf(choice, 0), ::testing::ElementsAre("eth1 10.1.0.1", "eth2 10.2.0.1"));
  EXPECT_THAT(railsOf(choice, 1), ::testing::ElementsAre("eth1 10.1.0.2", "eth2 10.2.0.2"));
  EXPECT_EQ(choice.rate, 100 * kGigabit);
  EXPECT_EQ(choice.network[1].management, (site::Nic{"eth0", "10.0.0.2"}));
  EXPECT_THAT(choice.words.at("rail_0"),
              AllOf(HasSubstr("eth1"), HasSubstr("10.1.0.0/24"), HasSubstr("100Gbit"),
                    HasSubstr("0000:3b:00.0"), HasSubstr("mtu 9000"), HasSubstr("of all hosts")));
  EXPECT_THAT(choice.words.at("not_rails"),
              AllOf(HasSubstr("eth0 of a is the management network"),
                    HasSubstr("eth3 (10.3.0.0/24"), HasSubstr("slower")));
}

TEST_F(ChooseRailsTest, ANumberOfThemTakesSlowerOnesToo) {
  spec_.railChoice.automatic = false;
  spec_.rails = 3;
  EXPECT_EQ(railsOf(chosen(), 0).back(), "eth3 10.3.0.1");
  EXPECT_EQ(chosen().rate, 25 * kGigabit);
  spec_.rails = 1;
  EXPECT_THAT(railsOf(chosen(), 0), ::testing::ElementsAre("eth1 10.1.0.1"));
  EXPECT_THAT(chosen().words.at("not_rails"), HasSubstr("one more than asked for"));
  spec_.rails = 4;
  EXPECT_THAT(whyNot(), HasSubstr("4 rails are wanted, and 3 are found"));
}

TEST_F(ChooseRailsTest, EachReasonToLeaveAPortOut) {
  struct Case {
    const char* what;
    void (*change)(HostPort&);
    const char* told;
  };
  const Case cases[] = {
      {"down", [](HostPort& one) { one.up = false; }, "eth2 of b is down"},
      {"cable", [](HostPort& one) { one.carrier = false; }, "eth2 of b has no carrier"},
      {"address", [](HostPort& one) { one.addresses.clear(); }, "eth2 of b has no IPv4 address"},
      {"layer", [](HostPort& one) { one.link = "other"; },
       "eth2 of b is neither Ethernet nor InfiniBand"},
      {"bridge", [](HostPort& one) { one.kind = "bridge"; }, "eth2 of b is a bridge"},
      {"subnet", [](HostPort& one) { one.addresses = {"10.9.0.2/24"}; },
       "nothing of b is in 10.2.0.0/24"},
      {"length", [](HostPort& one) { one.addresses = {"10.2.0.2/25"}; },
       "nothing of b is in 10.2.0.0/24"}};
  for (const Case& one : cases) {
    facts_ = {host(1), host(2)};
    one.change(portOf(facts_[1], "eth2"));
    EXPECT_THAT(railsOf(chosen(), 1), ::testing::ElementsAre("eth1 10.1.0.2")) << one.what;
    EXPECT_THAT(chosen().words.at("not_rails"), HasSubstr(one.told)) << one.what;
  }
}

TEST_F(ChooseRailsTest, AVethIsOneAndSpeedIsThatOfTheSlowestEnd) {
  for (HostFacts& facts : facts_) portOf(facts, "eth1").kind = "veth";
  portOf(facts_[1], "eth1").speed = 40 * kGigabit;
  EXPECT_THAT(railsOf(chosen(), 0), ::testing::ElementsAre("eth2 10.2.0.1"));
  for (HostFacts& facts : facts_) portOf(facts, "eth2").up = false;
  EXPECT_THAT(railsOf(chosen(), 0), ::testing::ElementsAre("eth1 10.1.0.1"));
  EXPECT_EQ(chosen().rate, 40 * kGigabit);
  spec_.railRate = 10 * kGigabit;
  EXPECT_EQ(chosen().rate, 10 * kGigabit);
}

TEST_F(ChooseRailsTest, ThoseWithRdmaDevicesComeFirst) {
  for (HostFacts& facts : facts_) portOf(facts, "eth2").rdma = "mlx5_1";
  EXPECT_THAT(railsOf(chosen(), 0), ::testing::ElementsAre("eth2 10.2.0.1", "eth1 10.1.0.1"));
  EXPECT_THAT(chosen().words.at("rail_0"), HasSubstr("mlx5_1"));
  portOf(facts_[1], "eth2").rdma = "";
  EXPECT_EQ(railsOf(chosen(), 0).front(), "eth1 10.1.0.1") << "not on all hosts";
}

TEST_F(ChooseRailsTest, OfTwoInASubnetTheFasterOne) {
  facts_[0].ports.push_back(port("eth9", "10.1.0.77/24", 10 * kGigabit));
  EXPECT_EQ(railsOf(chosen(), 0).front(), "eth1 10.1.0.1");
  EXPECT_THAT(chosen().words.at("not_rails"), HasSubstr("eth9 of a is in the subnet of eth1"));
  facts_[0].ports.back().speed = 400 * kGigabit;
  EXPECT_EQ(railsOf(chosen(), 0).front(), "eth9 10.1.0.77");
}

TEST_F(ChooseRailsTest, ByNameWhateverTheirSubnets) {
  spec_.railChoice = {.automatic = false, .names = {"eth3", "eth1"}};
  portOf(facts_[1], "eth3").addresses = {"10.77.0.2/31"};
  EXPECT_THAT(railsOf(chosen(), 1), ::testing::ElementsAre("eth3 10.77.0.2", "eth1 10.1.0.2"));
  EXPECT_EQ(chosen().rate, 25 * kGigabit);
  EXPECT_THAT(chosen().words.at("rail_0"), AllOf(HasSubstr("named"), HasSubstr("of b")));
  spec_.railChoice.names = {"eth7"};
  EXPECT_THAT(whyNot(), AllOf(HasSubstr("host a has no interface eth7"), HasSubstr("eth3")));
  spec_.railChoice.names = {"eth1"};
  portOf(facts_[1], "eth1").carrier = false;
  EXPECT_THAT(whyNot(), HasSubstr("eth1 of host b has no carrier"));
}

TEST_F(ChooseRailsTest, ByNameForEachHost) {
  spec_.railChoice = {
      .automatic = false, .names = {}, .byNode = {{"a", {"eth1"}}, {"b", {"eth2"}}}};
  EXPECT_THAT(railsOf(chosen(), 0), ::testing::ElementsAre("eth1 10.1.0.1"));
  EXPECT_THAT(railsOf(chosen(), 1), ::testing::ElementsAre("eth2 10.2.0.2"));
}

TEST_F(ChooseRailsTest, ManagementIsWhereSshCameOrTheDefaultRouteOrWhatIsNamed) {
  facts_[0].reachedAt = "10.3.0.1";
  EXPECT_EQ(chosen().network[0].management, (site::Nic{"eth3", "10.3.0.1"}));
  facts_[0].reachedAt = "203.0.113.5";  // of a gateway that translates addresses
  EXPECT_EQ(chosen().network[0].management, (site::Nic{"eth0", "10.0.0.1"}));
  facts_[0].defaultRoute = "";
  EXPECT_THAT(whyNot(), AllOf(HasSubstr("host a"), HasSubstr("management: NAME")));
  spec_.management = "eth3";
  EXPECT_EQ(chosen().network[0].management, (site::Nic{"eth3", "10.3.0.1"}));
  spec_.management = "ib0";
  EXPECT_THAT(whyNot(), HasSubstr("management: host a has no interface ib0"));
}

TEST_F(ChooseRailsTest, ManagementOfTheControllersOwnHostIsBesideThatOfTheOthers) {
  facts_[0].reachedAt = "127.0.0.1";
  facts_[0].defaultRoute = "eth3";
  EXPECT_EQ(chosen().network[0].management, (site::Nic{"eth0", "10.0.0.1"}));
  facts_[1].reachedAt = "";
  facts_[1].defaultRoute = "eth3";
  EXPECT_EQ(chosen().network[0].management, (site::Nic{"eth3", "10.3.0.1"}));
  facts_[0].defaultRoute = "";
  EXPECT_THAT(whyNot(), AllOf(HasSubstr("host a"), HasSubstr("the address 127.0.0.1"),
                              HasSubstr("management: NAME")));
  facts_[0].reachedAt = "";
  EXPECT_THAT(whyNot(), HasSubstr("an address of its name"));
}

TEST_F(ChooseRailsTest, WithoutARailItSaysWhy) {
  for (HostPort& one : facts_[1].ports) {
    if (one.name != "eth0") one.up = false;
  }
  EXPECT_THAT(whyNot(), AllOf(HasSubstr("no rails are found"), HasSubstr("eth1 of b is down"),
                              HasSubstr("rails: [NAME, ...]")));
}

TEST(LoopbackRailsTest, EachHostHasAddressesOfItsOwn) {
  HostsSpec spec = automatic();
  const Choice choice = loopbackRails(spec);
  EXPECT_THAT(railsOf(choice, 1), ::testing::ElementsAre("lo 127.101.0.2", "lo 127.102.0.2"));
  EXPECT_NE(choice.network[0].management, choice.network[1].management);
  spec.railChoice.automatic = false;
  spec.rails = 3;
  EXPECT_EQ(railsOf(loopbackRails(spec), 0).size(), 3U);
}

}  // namespace
}  // namespace faultline::hosts
