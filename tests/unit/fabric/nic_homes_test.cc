#include "resilient_ccl/fabric/nic_homes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

namespace faultline::fabric {

void PrintTo(const NicHomes::Change& change, std::ostream* out) {
  *out << "rail " << change.rail << " kind " << static_cast<int>(change.kind) << " usable "
       << change.usable;
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Change = NicHomes::Change;
using Kind = Change::Kind;

constexpr std::uint32_t kFirst = 0x0a000001, kSecond = 0x0a000101, kOther = 0x0a000107;

Port port(int index, std::string name, bool usable = true, std::string mac = {}) {
  return {.index = index, .name = std::move(name), .mac = std::move(mac), .usable = usable};
}
Port gone(int index) { return {.index = index, .name = {}, .mac = {}, .present = false}; }

/// Two rails, eth0 and eth1, with interfaces 2 and 3, and the network of management on 4.
class NicHomesTest : public ::testing::Test {
 protected:
  NicHomesTest() {
    homes_.add("eth0", kFirst, 2);
    homes_.add("eth1", kSecond, 3);
    (void)homes_.port(port(2, "eth0", true, "mac-0"));
    (void)homes_.port(port(3, "eth1", true, "mac-1"));
    (void)homes_.port(port(4, "mgmt0", true, "mac-m"));
    EXPECT_THAT(homes_.ports({2, 3, 4}), IsEmpty());
    EXPECT_THAT(homes_.addresses({{2, kFirst}, {3, kSecond}, {4, 0x0a090001}}), IsEmpty());
  }
  NicHomes homes_;
};

TEST_F(NicHomesTest, APortTellsItsRail) {
  EXPECT_THAT(homes_.port(port(3, "eth1", false, "mac-1")),
              ElementsAre(Change{1, Kind::kPort, false}));
  EXPECT_THAT(homes_.port(port(3, "eth1", true, "mac-1")),
              ElementsAre(Change{1, Kind::kPort, true}));
  EXPECT_THAT(homes_.port(port(4, "mgmt0", false)), IsEmpty());
}

TEST_F(NicHomesTest, ADeviceThatIsMadeAnewIsTakenBackWhenItHasTheAddress) {
  EXPECT_THAT(homes_.port(gone(3)), ElementsAre(Change{1, Kind::kGone}));
  EXPECT_EQ(homes_.index(1), 0);
  EXPECT_THAT(homes_.port(port(9, "eth1", true, "mac-9")), IsEmpty()) << "it has no address";
  EXPECT_THAT(homes_.address(9, kSecond, true), ElementsAre(Change{1, Kind::kMoved, true}));
  EXPECT_EQ(homes_.index(1), 9);
  EXPECT_THAT(homes_.port(port(9, "eth1", false)), ElementsAre(Change{1, Kind::kPort, false}));
}

TEST_F(NicHomesTest, AnotherNameWithTheSameAddressIsTheSameRail) {
  (void)homes_.port(gone(3));
  (void)homes_.port(port(9, "net7", true));
  EXPECT_THAT(homes_.address(9, kSecond, true), ElementsAre(Change{1, Kind::kMoved, true}));
  EXPECT_EQ(homes_.device(1), "net7");
}

TEST_F(NicHomesTest, TheSameNameWithAnotherAddressIsTheSameRail) {
  (void)homes_.port(gone(3));
  (void)homes_.port(port(9, "eth1", true));
  EXPECT_THAT(homes_.address(9, kOther, true),
              ElementsAre(Change{1, Kind::kAddress}, Change{1, Kind::kMoved, true}));
  EXPECT_EQ(homes_.address(1), kOther);
  EXPECT_EQ(homes_.addressChanges(1), 1u);
}

TEST_F(NicHomesTest, TheSameCardWithAnotherNameAndAddressIsKnownByItsMac) {
  (void)homes_.port(gone(3));
  (void)homes_.port(port(8, "eth7", true, "mac-7"));
  EXPECT_THAT(homes_.address(8, 0x0a000201, true), IsEmpty()) << "somebody else's";
  (void)homes_.port(port(9, "eth8", true, "mac-1"));
  EXPECT_THAT(homes_.address(9, kOther, true),
              ElementsAre(Change{1, Kind::kAddress}, Change{1, Kind::kMoved, true}));
  EXPECT_EQ(homes_.device(1), "eth8");
}

TEST_F(NicHomesTest, OfInfiniBandThePortsGuidCounts) {
  const std::string queue = std::string("\0\0\1\7", 4) + "\xfe\x80" + std::string(6, '\0');
  const std::string other = std::string("\0\0\2\3", 4) + "\xfe\x80" + std::string(6, '\0');
  NicHomes homes;
  homes.add("ib0", kFirst, 2);
  (void)homes.port(port(2, "ib0", true, queue + "guid-one"));
  (void)homes.addresses({{2, kFirst}});
  (void)homes.port(gone(2));
  (void)homes.port(port(5, "ib3", true, other + "guid-two"));
  EXPECT_THAT(homes.address(5, kOther, true), IsEmpty());
  (void)homes.port(port(6, "ib4", true, other + "guid-one"));
  EXPECT_THAT(homes.address(6, kOther + 1, true), ::testing::SizeIs(2));
  EXPECT_EQ(homes.index(0), 6);
}

TEST_F(NicHomesTest, TheAddressOutweighsTheName) {
  (void)homes_.port(gone(3));
  (void)homes_.port(gone(2));
  // The two have come back with each other's names.
  (void)homes_.port(port(8, "eth0", true));
  (void)homes_.port(port(9, "eth1", true));
  (void)homes_.address(8, kSecond, true);
  (void)homes_.address(9, kFirst, true);
  EXPECT_EQ(homes_.index(1), 8);
  EXPECT_EQ(homes_.index(0), 9);
}

TEST_F(NicHomesTest, ARenamedInterfaceIsFollowed) {
  EXPECT_THAT(homes_.port(port(3, "net1", true)),
              ElementsAre(Change{1, Kind::kRenamed}, Change{1, Kind::kPort, true}));
  EXPECT_EQ(homes_.device(1), "net1");
}

TEST_F(NicHomesTest, AnAddressThatMovesToANewInterfaceTakesItsRailAlong) {
  // eth1 becomes a port of a bond, or of a bridge, which gets its address.
  EXPECT_THAT(homes_.address(3, kSecond, false), IsEmpty());
  (void)homes_.port(port(9, "bond0", true));
  EXPECT_THAT(homes_.address(9, kSecond, true), ElementsAre(Change{1, Kind::kMoved, true}));
}

TEST_F(NicHomesTest, AnAddressThatIsThereTwiceMovesNothing) {
  EXPECT_THAT(homes_.address(4, kSecond, true), IsEmpty());
  EXPECT_EQ(homes_.index(1), 3);
}

TEST_F(NicHomesTest, NoRailTakesTheInterfaceOfAnother) {
  (void)homes_.port(gone(3));
  EXPECT_THAT(homes_.address(2, kSecond, true), IsEmpty());
  EXPECT_EQ(homes_.index(1), 0);
}

TEST_F(NicHomesTest, WhatAListLacksIsGone) {
  EXPECT_THAT(homes_.ports({2, 4}), ElementsAre(Change{1, Kind::kGone}));
  (void)homes_.port(port(9, "eth1", true));
  EXPECT_THAT(homes_.addresses({{2, kFirst}, {9, kSecond}}),
              ElementsAre(Change{1, Kind::kMoved, true}));
}

TEST_F(NicHomesTest, ARailWithoutAnInterfaceAtTheBeginningIsTakenWhenItComes) {
  NicHomes homes;
  homes.add("eth0", kFirst, 2);
  homes.add("eth1", kSecond, 0);
  (void)homes.port(port(2, "eth0"));
  EXPECT_THAT(homes.addresses({{2, kFirst}}), IsEmpty());
  (void)homes.port(port(9, "eth1"));
  EXPECT_THAT(homes.address(9, kSecond, true), ElementsAre(Change{1, Kind::kMoved, true}));
}

TEST_F(NicHomesTest, ARailOfAnyDeviceNeverMoves) {
  NicHomes homes;
  homes.add("", 0x7f000001, 0);
  (void)homes.port(port(1, "lo"));
  EXPECT_THAT(homes.addresses({{1, 0x7f000001}}), IsEmpty());
  EXPECT_EQ(homes.index(0), 0);
}

TEST_F(NicHomesTest, NothingMovesBeforeAllAddressesAreKnown) {
  NicHomes homes;
  homes.add("eth0", kFirst, 2);
  (void)homes.port(port(2, "eth0"));
  (void)homes.port(port(3, "eth1"));
  EXPECT_THAT(homes.address(3, kFirst, true), IsEmpty());
  EXPECT_THAT(homes.addresses({{2, kFirst}, {3, kFirst}}), IsEmpty());
}

}  // namespace
}  // namespace faultline::fabric
