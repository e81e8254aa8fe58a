#include "harness/cli/nccl_bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace faultline::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint32_t kMask24 = 0xffffff00;

const std::vector<InterfaceAddress> kNode{
    {"lo", 0x7f000001, 0xff000000}, {"docker0", 0xac110001, 0xffff0000},
    {"mgmt", 0x0a000001, kMask24},  {"rail0", 0x0a010001, kMask24},
    {"rail1", 0x0a020001, kMask24}, {"rail10", 0x0a030001, kMask24}};

/// What the plugin lists of the same machine, all up.
std::vector<nccl::Interface> asThePluginLists(const std::vector<InterfaceAddress>& node) {
  std::vector<nccl::Interface> interfaces;
  for (const InterfaceAddress& one : node) {
    interfaces.push_back(
        {.name = one.name, .address = one.address, .up = true, .loopback = one.name == "lo"});
  }
  return interfaces;
}

using Variables = std::map<std::string, std::string>;

BootstrapFinding judge(const Variables& variables, const MachineInterfaces& interfaces) {
  return judgeBootstrap(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      interfaces);
}
BootstrapFinding judge(const Variables& variables,
                       const std::vector<InterfaceAddress>& node = kNode) {
  return judge(variables, {.running = node, .plugins = asThePluginLists(node)});
}

TEST(InterfacesOfList, ArePrefixesNamesOrAllOthers) {
  EXPECT_THAT(interfacesOfList("rail1", kNode), ElementsAre("rail1", "rail10"));
  EXPECT_THAT(interfacesOfList("=rail1", kNode), ElementsAre("rail1"));
  EXPECT_THAT(interfacesOfList("=rail1,rail0", kNode), ElementsAre("rail0", "rail1"));
  EXPECT_THAT(interfacesOfList("^docker,lo,rail", kNode), ElementsAre("mgmt"));
  EXPECT_THAT(interfacesOfList("^=rail1,lo", kNode),
              ElementsAre("docker0", "mgmt", "rail0", "rail10"));
  EXPECT_THAT(interfacesOfList("eth", kNode), IsEmpty());
}

TEST(Bootstrap, OnAnInterfaceOfItsOwnIsGood) {
  const auto found = judge({{"NCCL_SOCKET_IFNAME", "=mgmt"}, {"FAULTLINE_NICS", "rail0,rail1"}});
  EXPECT_TRUE(found.ok);
  EXPECT_EQ(found.found, "mgmt, which is no rail (FAULTLINE_NICS: rail0, rail1)");
}

TEST(Bootstrap, OnARailIsNot) {
  const auto found =
      judge({{"NCCL_SOCKET_IFNAME", "=rail0,rail1"}, {"FAULTLINE_NICS", "rail0,rail1"}});
  EXPECT_FALSE(found.ok);
  EXPECT_THAT(found.found, HasSubstr("rail0, which is a rail"));
}

TEST(Bootstrap, WithoutNamedRailsAllAreRails) {
  const auto found = judge({});
  EXPECT_FALSE(found.ok);
  EXPECT_EQ(found.found,
            "mgmt, which is a rail (without FAULTLINE_NICS rails are mgmt, rail0, rail1, rail10)");
  EXPECT_TRUE(judge({{"FAULTLINE_NICS", "rail0,rail1"}}).ok);
}

TEST(Bootstrap, InfiniBandIsTakenFirst) {
  std::vector<InterfaceAddress> node = kNode;
  node.push_back({"ib0", 0x0a040001, kMask24});
  EXPECT_FALSE(judge({{"FAULTLINE_NICS", "ib0"}}, node).ok);
}

TEST(Bootstrap, FollowsTheAddressOfTheCommunicator) {
  const Variables rails_only{{"NCCL_SOCKET_IFNAME", "=rail0,rail1"},
                             {"NCCL_COMM_ID", "10.0.0.9:29501"}};
  const auto found = judge(rails_only);
  EXPECT_TRUE(found.ok);
  EXPECT_THAT(found.found, HasSubstr("mgmt, which is no rail"));
  EXPECT_FALSE(judge({{"NCCL_SOCKET_IFNAME", "=mgmt"},
                      {"NCCL_COMM_ID", "10.1.0.9:29501"},
                      {"FAULTLINE_NICS", "rail0"}},
                     kNode)
                   .ok);
  const auto nowhere = judge({{"NCCL_COMM_ID", "192.168.1.1:29501"}});
  EXPECT_FALSE(nowhere.ok);
  EXPECT_THAT(nowhere.found, HasSubstr("no interface is in the subnet"));
}

TEST(Bootstrap, TheCommunicatorsHostMayHaveAName) {
  MachineInterfaces interfaces{.running = kNode, .plugins = asThePluginLists(kNode)};
  interfaces.resolve = [](const std::string& name) -> std::optional<std::uint32_t> {
    if (name == "node0") return 0x0a000009;
    return std::nullopt;
  };
  const Variables named{{"NCCL_COMM_ID", "node0:29501"}, {"FAULTLINE_NICS", "rail0"}};
  const auto found = judge(named, interfaces);
  EXPECT_TRUE(found.ok) << found.found;
  EXPECT_THAT(found.found, HasSubstr("mgmt, which is no rail"));
  const auto unknown = judge({{"NCCL_COMM_ID", "nodeO:29501"}}, interfaces);
  EXPECT_FALSE(unknown.ok);
  EXPECT_EQ(unknown.found, "nodeO of NCCL_COMM_ID=nodeO:29501 has no IPv4 address");
}

TEST(Bootstrap, ThePluginsOwnMeetingMustBeOverNoRailEither) {
  Variables variables{{"NCCL_SOCKET_IFNAME", "=mgmt"},
                      {"FAULTLINE_NICS", "rail0,rail1"},
                      {"FAULTLINE_MANAGEMENT", "mgmt"}};
  EXPECT_TRUE(judge(variables).ok);
  variables["FAULTLINE_MANAGEMENT"] = "rail0";
  const auto onRail = judge(variables);
  EXPECT_FALSE(onRail.ok);
  EXPECT_THAT(onRail.found, HasSubstr("meet over rail0, which is one"));
  variables["FAULTLINE_MANAGEMENT"] = "eth99";
  const auto missing = judge(variables);
  EXPECT_FALSE(missing.ok);
  EXPECT_THAT(missing.found, HasSubstr("FAULTLINE_MANAGEMENT=eth99 is no interface"));
}

TEST(Bootstrap, OverTheNetworkIsOverARailAfterTheFirstContact) {
  Variables variables{{"NCCL_SOCKET_IFNAME", "=mgmt"},
                      {"FAULTLINE_NICS", "rail0,rail1"},
                      {"NCCL_OOB_NET_ENABLE", "1"}};
  const auto any = judge(variables);
  EXPECT_FALSE(any.ok);
  EXPECT_THAT(any.found, HasSubstr("mgmt, which is no rail"));
  EXPECT_THAT(any.found, HasSubstr("NCCL_OOB_NET_ENABLE"));
  variables["NCCL_OOB_NET_IFNAME"] = "=rail1";
  EXPECT_FALSE(judge(variables).ok);
  // An interface that is no device of the plugin: NCCL finds "no device matching".
  variables["NCCL_OOB_NET_IFNAME"] = "mgmt";
  const auto none = judge(variables);
  EXPECT_FALSE(none.ok);
  EXPECT_THAT(none.found, HasSubstr("NCCL_OOB_NET_IFNAME=mgmt means none of the rails"));
  // Which says nothing as long as it is not enabled.
  variables["NCCL_OOB_NET_ENABLE"] = "0";
  const auto off = judge(variables);
  EXPECT_TRUE(off.ok);
  EXPECT_EQ(off.found, "mgmt, which is no rail (FAULTLINE_NICS: rail0, rail1)");
  // The first contact is on a rail all the same.
  EXPECT_FALSE(judge({{"NCCL_SOCKET_IFNAME", "=rail0"},
                      {"FAULTLINE_NICS", "rail0"},
                      {"NCCL_OOB_NET_ENABLE", "1"}})
                   .ok);
}

// The documented default, and an empty one, as the plugin reads them.
TEST(Bootstrap, NoneNamesNoRail) {
  for (const char* none : {"none", ""}) {
    const auto found = judge({{"FAULTLINE_NICS", none}});
    EXPECT_FALSE(found.ok) << none;
    EXPECT_THAT(found.found, HasSubstr("mgmt, which is a rail (without FAULTLINE_NICS"));
  }
}

TEST(Bootstrap, BlanksBesideNamesMeanNothing) {
  for (const char* rail : {" mgmt", "rail0, mgmt", "mgmt ,rail0"}) {
    const auto found = judge({{"NCCL_SOCKET_IFNAME", "=mgmt"}, {"FAULTLINE_NICS", rail}});
    EXPECT_FALSE(found.ok) << rail;
    EXPECT_THAT(found.found, HasSubstr("mgmt, which is a rail"));
  }
}

// NCCL takes them for a part of a name.
TEST(Bootstrap, BlanksInNcclsOwnListAreFound) {
  const auto found = judge({{"NCCL_SOCKET_IFNAME", "=docker0, mgmt"}, {"FAULTLINE_NICS", "rail0"}});
  EXPECT_FALSE(found.ok);
  EXPECT_THAT(found.found, HasSubstr("has a blank"));
}

TEST(Bootstrap, ASingleCharacterIsNoListForNccl) {
  EXPECT_TRUE(judge({{"NCCL_SOCKET_IFNAME", "r"}, {"FAULTLINE_NICS", "rail0"}}).ok);
}

TEST(Bootstrap, WhatThePluginRefusesIsFound) {
  const auto unknown = judge({{"NCCL_SOCKET_IFNAME", "=mgmt"}, {"FAULTLINE_NICS", "rail0,rail9"}});
  EXPECT_FALSE(unknown.ok);
  EXPECT_THAT(unknown.found, HasSubstr("FAULTLINE_NICS names rail9, which is no interface"));
  const auto nothing = judge({{"NCCL_SOCKET_IFNAME", "=mgmt"}, {"FAULTLINE_NICS", " , "}});
  EXPECT_FALSE(nothing.ok);
  EXPECT_THAT(nothing.found, HasSubstr("FAULTLINE_NICS"));
}

// NCCL takes ib0 alone for its bootstrap; the plugin takes all that are up.
TEST(Bootstrap, WithoutNamedRailsInfiniBandIsOneOfThem) {
  std::vector<InterfaceAddress> node = kNode;
  node.push_back({"ib0", 0x0a040001, kMask24});
  EXPECT_EQ(judge({}, node).found,
            "ib0, which is a rail (without FAULTLINE_NICS rails are mgmt, rail0, rail1, rail10, "
            "ib0)");
}

TEST(Bootstrap, ARailWithoutACableIsARailNevertheless) {
  std::vector<InterfaceAddress> running = kNode;
  std::erase_if(running, [](const InterfaceAddress& one) { return one.name == "rail0"; });
  const auto found = judge({{"NCCL_SOCKET_IFNAME", "=mgmt"}, {"FAULTLINE_NICS", "rail0,rail1"}},
                           {.running = running, .plugins = asThePluginLists(kNode)});
  EXPECT_TRUE(found.ok);
  EXPECT_EQ(found.found, "mgmt, which is no rail (FAULTLINE_NICS: rail0, rail1)");
}

TEST(Bootstrap, WithoutInterfacesThereIsNone) {
  EXPECT_FALSE(judge({}, MachineInterfaces{}).ok);
  EXPECT_FALSE(judge({{"NCCL_SOCKET_IFNAME", "eth"}}).ok);
}

}  // namespace
}  // namespace faultline::cli
