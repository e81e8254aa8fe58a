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
          {.name = "docker0", .address = 5, .up = true, .ofContainers = true}};
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
  EXPECT_TRUE(takesInterface("=", "ens5"));
  EXPECT_FALSE(takesInterface("^", "ens5"));
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

TEST(NcclDeviceTest, LoopbackIsARailOnlyByItsWholeName) {
  EXPECT_THAT(names(*chooseRails(host(), {}, "^docker")), ElementsAre("eth0", "rail0", "rail1"));
  EXPECT_THAT(names(*chooseRails(host(), {}, "^=eth0,docker0")), ElementsAre("rail0", "rail1"));
  EXPECT_THAT(names(*chooseRails(host(), {}, "l,rail0")), ElementsAre("rail0"));
  EXPECT_THAT(names(*chooseRails(host(), {}, "=rail0,lo")), ElementsAre("lo", "rail0"));
  EXPECT_THAT(names(*chooseRails(host(), {"lo"}, "")), ElementsAre("lo"));
  EXPECT_EQ(chooseManagement(host(), "", "^rail,docker", *chooseRails(host(), {"rail0"}, ""))->name,
            "eth0");
}

TEST(NcclDeviceTest, BridgesOfContainersAreNoRailsUnlessTheyAreMeant) {
  std::vector<Interface> node = host();
  node.push_back({.name = "br-0123456789ab", .address = 7, .up = true, .ofContainers = true});
  EXPECT_THAT(names(*chooseRails(node, {}, "")), ElementsAre("eth0", "rail0", "rail1"));
  EXPECT_THAT(names(*chooseRails(node, {"docker0"}, "")), ElementsAre("docker0"));
  EXPECT_THAT(names(*chooseRails(node, {}, "br-")), ElementsAre("br-0123456789ab"));
  const std::vector<Interface> few{node[6], node[5], node[2]};
  EXPECT_EQ(chooseManagement(few, "", "", {node[2]})->name, "rail0");
  // A list that excludes others means none of them.
  EXPECT_THAT(names(*chooseRails(node, {}, "^eth")), ElementsAre("rail0", "rail1"));
  EXPECT_THAT(names(*chooseRails(node, {}, "=")), ElementsAre("eth0", "rail0", "rail1"));
  EXPECT_EQ(chooseManagement(few, "", "^eth", {node[2]})->name, "rail0");
  const auto none = chooseRails({node[6]}, {}, "");
  EXPECT_THAT(none.status().message(), HasSubstr("br-0123456789ab (a bridge of containers)"));
}

TEST(NcclDeviceTest, AnAddressOfTheLinkAloneIsARailWhereThereIsNoOther) {
  std::vector<Interface> node = host();
  node.push_back({.name = "usb0", .address = 0xa9fe0102, .up = true});
  EXPECT_THAT(names(*chooseRails(node, {}, "")), ElementsAre("eth0", "rail0", "rail1"));
  EXPECT_THAT(names(*chooseRails({node.back()}, {}, "")), ElementsAre("usb0"));
  EXPECT_THAT(names(*chooseRails(node, {}, "usb")), ElementsAre("usb0"));
}

TEST(NcclDeviceTest, ALabelNamesAnAddressOfItsInterface) {
  std::vector<Interface> node = host();
  node[1].labels = {{.label = "eth0:1", .address = 0x0a000065, .prefix = 20}};
  EXPECT_THAT(names(*chooseRails(node, {}, "eth")), ElementsAre("eth0"));
  const auto labelled = chooseRails(node, {"eth0:1", "rail0"}, "");
  ASSERT_TRUE(labelled.ok()) << labelled.status().message();
  EXPECT_THAT(names(*labelled), ElementsAre("eth0", "rail0"));
  EXPECT_EQ(labelled->front().address, 0x0a000065u);
  EXPECT_EQ(labelled->front().prefix, 20);
  const auto twice = chooseRails(node, {"eth0", "eth0:1"}, "");
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.status().message(), HasSubstr("eth0:1 is a label"));
  EXPECT_EQ(chooseManagement(node, "eth0:1", "", {node[2]})->address, 0x0a000065u);
}

TEST(NcclDeviceTest, WhatHasNoIpv4AddressIsRefusedWithTheWayOut) {
  std::vector<Interface> node{host()[0], {.name = "eth0", .up = true, .ipv6 = "fd00::1"}};
  for (const auto& chosen :
       {chooseRails(node, {}, ""), chooseRails(node, {"eth0"}, ""), chooseRails(node, {}, "eth")}) {
    ASSERT_FALSE(chosen.ok());
    EXPECT_EQ(chosen.status().code(), Code::kNotFound);
    EXPECT_THAT(chosen.status().message(),
                ::testing::AllOf(HasSubstr("eth0"), HasSubstr("fd00::1"), HasSubstr("IPv4"),
                                 HasSubstr("ip addr add")));
  }
  EXPECT_THAT(chooseManagement(node, "eth0", "", {}).status().message(), HasSubstr("fd00::1"));
  node.push_back({.name = "eth1", .up = true, .master = "bond0"});
  EXPECT_THAT(chooseRails(node, {"eth1"}, "").status().message(),
              HasSubstr("a port of bond0 and has no address of its own: name bond0"));
}

TEST(NcclDeviceTest, ToGiveAnAddressIsAdvisedWhereThatIsAllThatIsMissing) {
  std::vector<Interface> node{{.name = "lo", .up = true, .loopback = true, .ipv6 = "::1"},
                              {.name = "eth2", .up = false, .ipv6 = "fd00::2"},
                              {.name = "eth3", .up = true},
                              {.name = "eth4", .address = 5, .up = true, .ipv6 = "fd00::5"}};
  EXPECT_THAT(chooseRails(node, {}, "ib").status().message(),
              ::testing::Not(HasSubstr("has the IPv6 address")));
  node.push_back({.name = "eth0", .up = true, .ipv6 = "fd00::1"});
  EXPECT_THAT(chooseRails(node, {}, "ib").status().message(),
              HasSubstr("eth0 has the IPv6 address fd00::1 and none of IPv4"));
}

TEST(NcclDeviceTest, InterfacesAreDevicesAndNotLabels) {
  fabric::NetworkSnapshot network;
  const auto four = [](const char* text, std::uint32_t address, std::string label,
                       int prefix = 24) {
    return fabric::NetworkAddress{.text = text,
                                  .ipv4 = address,
                                  .prefix = prefix,
                                  .label = std::move(label),
                                  .ofItsLink = address >> 16 == 0xa9fe};
  };
  network.links = {{.index = 2, .name = "eth0", .up = true},
                   {.index = 3, .name = "eth1", .master = 4, .up = true},
                   {.index = 4, .name = "bond0", .kind = "bond", .up = true},
                   {.index = 5, .name = "eth2", .up = true},
                   {.index = 6, .name = "eth3", .up = true}};
  network.links[0].addresses = {four("10.0.0.101", 0x0a000065, "eth0:1"),
                                four("169.254.1.1", 0xa9fe0101, "eth0"),
                                four("10.0.0.1", 0x0a000001, "eth0")};
  network.links[2].addresses = {four("10.0.1.1", 0x0a000101, "bond0")};
  network.links[3].addresses = {{.text = "fe80::1", .prefix = 64, .ofItsLink = true},
                                {.text = "fd00::1", .prefix = 64}};
  const std::vector<Interface> interfaces = interfacesOf(network);
  EXPECT_THAT(names(interfaces), ElementsAre("eth0", "eth1", "bond0", "eth2"));
  EXPECT_EQ(interfaces[0].address, 0x0a000001u);
  EXPECT_EQ(interfaces[0].prefix, 24);
  ASSERT_EQ(interfaces[0].labels.size(), 1u);
  EXPECT_EQ(interfaces[0].labels[0].label, "eth0:1");
  EXPECT_EQ(interfaces[1].master, "bond0");
  EXPECT_EQ(interfaces[3].ipv6, "fd00::1");
}

TEST(NcclDeviceTest, AnInterfaceThatWasRenamedIsFoundByItsAddress) {
  fabric::NetworkSnapshot network;
  network.links = {{.index = 2, .name = "eth1", .up = true}, {.index = 3, .name = "eth0"}};
  network.links[0].addresses = {{.text = "10.0.0.1", .ipv4 = 0x0a000001, .prefix = 24}};
  network.links[1].addresses = {{.text = "10.0.1.1", .ipv4 = 0x0a000101, .prefix = 24}};
  EXPECT_EQ(presentName(network, {.name = "eth0", .address = 0x0a000001}), "eth1");
  EXPECT_EQ(presentName(network, {.name = "eth1", .address = 0x0a000101}), "eth0");
  network.links[1].addresses.push_back({.text = "10.0.0.1", .ipv4 = 0x0a000001, .prefix = 24});
  EXPECT_EQ(presentName(network, {.name = "eth0", .address = 0x0a000001}), "eth0");
  EXPECT_EQ(presentName(network, {.name = "eth0", .address = 0x0a000009}), "eth0");
}

TEST(NcclDeviceTest, ABridgeOfContainersIsKnownByItsPorts) {
  fabric::NetworkSnapshot network;
  network.links = {{.index = 2, .name = "mybr0", .kind = "bridge", .up = true},
                   {.index = 3, .name = "veth1", .kind = "veth", .master = 2, .up = true},
                   {.index = 4, .name = "br0", .kind = "bridge", .up = true},
                   {.index = 5, .name = "eth0", .master = 4, .up = true}};
  network.links[0].addresses = {{.text = "172.18.0.1", .ipv4 = 0xac120001, .prefix = 16}};
  network.links[2].addresses = {{.text = "10.0.0.1", .ipv4 = 0x0a000001, .prefix = 24}};
  const std::vector<Interface> interfaces = interfacesOf(network);
  EXPECT_THAT(names(*chooseRails(interfaces, {}, "")), ElementsAre("br0"));
  EXPECT_THAT(names(*chooseRails(interfaces, {}, "^docker")), ElementsAre("br0"));
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

TEST(NcclDeviceTest, MoreThanAFabricTakesAreNotRails) {
  std::vector<Interface> many;
  for (int i = 0; i < 33; ++i) {
    many.push_back({.name = "br-" + std::to_string(i), .address = 1, .up = true});
  }
  const auto all = chooseRails(many, {}, "");
  ASSERT_FALSE(all.ok());
  EXPECT_THAT(all.status().message(), HasSubstr("32 at most"));
  EXPECT_THAT(all.status().message(), HasSubstr("FAULTLINE_NICS"));
  many.pop_back();
  EXPECT_TRUE(chooseRails(many, {}, "").ok());
}

TEST(NcclDeviceTest, ManagementIsNoRailWhereThereIsAChoice) {
  const auto rails = *chooseRails(host(), {}, "rail");
  EXPECT_EQ(chooseManagement(host(), "", "", rails)->name, "eth0");
  EXPECT_EQ(chooseManagement(host(), "rail1", "", rails)->name, "rail1");
  // NCCL's own ranks meet there, so nodes reach each other.
  EXPECT_EQ(chooseManagement(host(), "", "=docker0", rails)->name, "docker0");
  EXPECT_EQ(chooseManagement(host(), "", "rail", rails)->name, "eth0");  // those are rails
  std::vector<Interface> server = host();
  server[1].address = 0xa9fe0001;  // 169.254.0.1: of its own controller
  server.push_back({.name = "eth1", .address = 9, .up = true});
  EXPECT_EQ(chooseManagement(server, "", "", rails)->name, "eth1");
  server.back().up = false;
  EXPECT_EQ(chooseManagement(server, "", "", rails)->name, "rail0");
  EXPECT_EQ(chooseManagement(server, "", "=eth0", rails)->name, "eth0");  // when it is asked for
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
  for (const auto& [said, port] : {std::pair{"0\n", 1}, {"2\n", 2}, {"", 1}}) {
    std::ofstream(net / "dev_port") << said;
    EXPECT_EQ(inspect({.name = "rail0", .address = 2, .up = true}, sys.string()).port, port)
        << "the second function's, dev_port " << said;
  }

  // A driver's own device may stand between the two.
  const fs::path function = sys / "devices" / "pci0000:00" / "0000:00:05.0";
  const fs::path ens5 = sys / "class" / "net" / "ens5";
  fs::create_directories(function / "virtio2");
  fs::create_directories(ens5);
  fs::create_directory_symlink(function / "virtio2", ens5 / "device");
  std::ofstream(function / "numa_node") << "1\n";
  const Device virtio = inspect({.name = "ens5", .address = 2, .up = true}, sys.string());
  EXPECT_EQ(virtio.pciPath, fs::canonical(function).string());
  EXPECT_EQ(virtio.guid, 0x00000005U);
  EXPECT_EQ(virtio.numaNode, 1);

  // One on another bus is not on PCI itself, but its controller is.
  const fs::path stick = function / "usb1" / "1-3" / "1-3:1.0";
  fs::create_directories(stick);
  fs::create_directories(sys / "class" / "net" / "usb0");
  fs::create_directory_symlink(stick, sys / "class" / "net" / "usb0" / "device");
  EXPECT_EQ(inspect({.name = "usb0", .address = 2, .up = true}, sys.string()).pciPath,
            fs::canonical(function).string());

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
