#include "resilient_ccl/nccl/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace faultline::nccl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Interface> host() {
  return {{.name = "lo", .address = 0x7f000001, .up = true, .loopback = true},
          {.name = "eth0", .address = 1, .up = true},
          {.name = "rail0", .address = 2, .up = true},
          {.name = "rail1", .address = 3, .up = true},
          {.name = "rail2", .address = 4, .up = false},
          {.name = "docker0", .address = 5, .up = true}};
}

std::vector<std::string> names(const std::vector<Interface>& interfaces) {
  std::vector<std::string> all;
  for (const Interface& one : interfaces) all.push_back(one.name);
  return all;
}

TEST(NcclDeviceTest, RulesAreThoseOfNccl) {
  EXPECT_TRUE(takesInterface("rail", "rail3"));
  EXPECT_FALSE(takesInterface("rail", "eth0"));
  EXPECT_TRUE(takesInterface("ib,eth", "eth0"));
  EXPECT_FALSE(takesInterface("^rail,eth", "eth0"));
  EXPECT_TRUE(takesInterface("^docker", "rail0"));
  EXPECT_TRUE(takesInterface("=rail1", "rail1"));
  EXPECT_FALSE(takesInterface("=rail1", "rail10"));
  EXPECT_TRUE(takesInterface("^=rail1", "rail10"));
  EXPECT_TRUE(takesInterface("rail:1", "rail0"));
  EXPECT_FALSE(takesInterface("", "docker0"));
  EXPECT_TRUE(takesInterface("", "ens5"));
}

TEST(NcclDeviceTest, RailsAreThoseThatAreNamedInThatOrder) {
  const auto rails = chooseRails(host(), {"rail1", "rail0", "rail2"}, "");
  ASSERT_TRUE(rails.ok());
  EXPECT_THAT(names(*rails), ElementsAre("rail1", "rail0", "rail2"));  // also one that is down now
}

TEST(NcclDeviceTest, WithoutNamesTheyAreThoseThatAreUpAndMeant) {
  EXPECT_THAT(names(*chooseRails(host(), {}, "rail")), ElementsAre("rail0", "rail1"));
  EXPECT_THAT(names(*chooseRails(host(), {}, "")), ElementsAre("eth0", "rail0", "rail1"));
  EXPECT_THAT(names(*chooseRails(host(), {}, "lo")), ElementsAre("lo"));
}

TEST(NcclDeviceTest, WhatIsMissingIsSaidWithWhatThereIs) {
  const auto missing = chooseRails(host(), {"rail9"}, "");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.status().message(), HasSubstr("rail9"));
  EXPECT_THAT(missing.status().message(), HasSubstr("rail2 (down)"));
  const auto twice = chooseRails(host(), {"rail0", "rail0"}, "");
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.status().message(), HasSubstr("twice"));
  const auto none = chooseRails(host(), {}, "mlx");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.status().message(), HasSubstr("FAULTLINE_NICS"));
}

TEST(NcclDeviceTest, ManagementIsNoRailWhereThereIsAChoice) {
  const auto rails = *chooseRails(host(), {}, "rail");
  EXPECT_EQ(chooseManagement(host(), "", "", rails)->name, "eth0");
  EXPECT_EQ(chooseManagement(host(), "rail1", "", rails)->name, "rail1");
  EXPECT_EQ(chooseManagement(host(), "", "=docker0", rails)->name, "docker0");
  const std::vector<Interface> few{host()[0], host()[2], host()[3]};
  EXPECT_EQ(chooseManagement(few, "", "", rails)->name, "rail0");
  EXPECT_FALSE(chooseManagement(host(), "eth7", "", rails).ok());
}

TEST(NcclDeviceTest, SysfsTellsWhereACardSitsAndHowFastItIs) {
  namespace fs = std::filesystem;
  const fs::path sys = fs::path(::testing::TempDir()) / "faultline_nccl_sysfs";
  fs::remove_all(sys);
  const fs::path card = sys / "devices" / "pci0000:16" / "0000:17:00.1";
  const fs::path net = sys / "class" / "net" / "rail0";
  fs::create_directories(card);
  fs::create_directories(net);
  fs::create_directory_symlink(card, net / "device");
  std::ofstream(net / "speed") << "200000\n";
  std::ofstream(net / "address") << "02:42:ac:11:00:02\n";
  std::ofstream(net / "dev_port") << "1\n";
  const Device device = inspect({.name = "rail0", .address = 2, .up = true}, sys.string());
  EXPECT_EQ(device.pciPath, fs::canonical(card).string());
  EXPECT_EQ(device.guid, 0x00001700U);
  EXPECT_EQ(device.speed, 200000);
  EXPECT_EQ(device.port, 1);

  // A veth has no card, and no speed while it is down.
  fs::create_directories(sys / "class" / "net" / "veth0");
  std::ofstream(sys / "class" / "net" / "veth0" / "speed") << "-1\n";
  std::ofstream(sys / "class" / "net" / "veth0" / "address") << "02:42:ac:11:00:02\n";
  const Device virtualOne = inspect({.name = "veth0", .address = 2, .up = true}, sys.string());
  EXPECT_TRUE(virtualOne.pciPath.empty());
  EXPECT_EQ(virtualOne.guid, 0x0242ac110002U);
  EXPECT_EQ(virtualOne.speed, kUnknownSpeed);
  fs::remove_all(sys);
}

}  // namespace
}  // namespace faultline::nccl
