#include "harness/cli/nccl_bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  const auto found = judgeBootstrap({.socketInterfaces = "=mgmt", .rails = "rail0,rail1"}, kNode);
  EXPECT_TRUE(found.ok);
  EXPECT_EQ(found.found, "mgmt, which is no rail (FAULTLINE_NICS: rail0, rail1)");
}

TEST(Bootstrap, OnARailIsNot) {
  const auto found =
      judgeBootstrap({.socketInterfaces = "=rail0,rail1", .rails = "rail0,rail1"}, kNode);
  EXPECT_FALSE(found.ok);
  EXPECT_THAT(found.found, HasSubstr("rail0, which is a rail"));
}

TEST(Bootstrap, WithoutNamedRailsAllAreRails) {
  const auto found = judgeBootstrap({}, kNode);
  EXPECT_FALSE(found.ok);
  EXPECT_EQ(found.found,
            "mgmt, which is a rail (without FAULTLINE_NICS rails are mgmt, rail0, rail1, rail10)");
  EXPECT_TRUE(judgeBootstrap({.rails = "rail0,rail1"}, kNode).ok);
}

TEST(Bootstrap, InfiniBandIsTakenFirst) {
  std::vector<InterfaceAddress> node = kNode;
  node.push_back({"ib0", 0x0a040001, kMask24});
  EXPECT_FALSE(judgeBootstrap({.rails = "ib0"}, node).ok);
}

TEST(Bootstrap, FollowsTheAddressOfTheCommunicator) {
  const BootstrapVariables rails_only{.socketInterfaces = "=rail0,rail1",
                                      .communicatorId = "10.0.0.9:29501"};
  const auto found = judgeBootstrap(rails_only, kNode);
  EXPECT_TRUE(found.ok);
  EXPECT_THAT(found.found, HasSubstr("mgmt, which is no rail"));
  EXPECT_FALSE(
      judgeBootstrap(
          {.socketInterfaces = "=mgmt", .communicatorId = "10.1.0.9:29501", .rails = "rail0"},
          kNode)
          .ok);
  const auto nowhere = judgeBootstrap({.communicatorId = "192.168.1.1:29501"}, kNode);
  EXPECT_FALSE(nowhere.ok);
  EXPECT_THAT(nowhere.found, HasSubstr("no interface is in the subnet"));
}

TEST(Bootstrap, OverTheNetworkIsOverARailAfterTheFirstContact) {
  BootstrapVariables variables{
      .socketInterfaces = "=mgmt", .rails = "rail0,rail1", .overNetwork = "1"};
  const auto any = judgeBootstrap(variables, kNode);
  EXPECT_TRUE(any.ok);
  EXPECT_THAT(any.found, HasSubstr("mgmt, which is no rail"));
  EXPECT_THAT(any.found, HasSubstr("NCCL_OOB_NET_ENABLE"));
  variables.networkDevices = "=rail1";
  EXPECT_TRUE(judgeBootstrap(variables, kNode).ok);
  // An interface that is no device of the plugin: NCCL finds "no device matching".
  variables.networkDevices = "mgmt";
  const auto none = judgeBootstrap(variables, kNode);
  EXPECT_FALSE(none.ok);
  EXPECT_THAT(none.found, HasSubstr("NCCL_OOB_NET_IFNAME=mgmt means none of the rails"));
  // Which says nothing as long as it is not enabled.
  variables.overNetwork = "0";
  const auto off = judgeBootstrap(variables, kNode);
  EXPECT_TRUE(off.ok);
  EXPECT_EQ(off.found, "mgmt, which is no rail (FAULTLINE_NICS: rail0, rail1)");
  // The first contact is on a rail all the same.
  EXPECT_FALSE(
      judgeBootstrap({.socketInterfaces = "=rail0", .rails = "rail0", .overNetwork = "1"}, kNode)
          .ok);
}

TEST(Bootstrap, WithoutInterfacesThereIsNone) {
  EXPECT_FALSE(judgeBootstrap({}, {}).ok);
  EXPECT_FALSE(judgeBootstrap({.socketInterfaces = "eth"}, kNode).ok);
}

}  // namespace
}  // namespace faultline::cli
