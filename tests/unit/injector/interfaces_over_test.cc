#include <gtest/gtest.h>

#include "injector/netlink/indispensable.h"

namespace faultline::netlink {
namespace {

using Over = std::set<int>;

NetDevice made(int ifindex, int lower, int master = 0) {
  NetDevice link;
  link.ifindex = ifindex;
  link.peer_ifindex = lower;
  link.bridge_ifindex = master;
  return link;
}

TEST(InterfacesOverTest, OfAnInterfaceAloneThereIsOnlyItself) {
  EXPECT_EQ(interfacesOver({}, 2), Over{2});
  EXPECT_EQ(interfacesOver({made(2, 0), made(3, 0)}, 2), Over{2});
}

TEST(InterfacesOverTest, VlansMacvlansAndMastersAreFollowedToTheTop) {
  // A VLAN on a bond of two, and a macvlan on the VLAN; listed from the top, as it may be.
  const std::vector<NetDevice> links{made(7, 6),    made(6, 5),    made(5, 0),
                                     made(2, 0, 5), made(3, 0, 5), made(4, 0)};
  EXPECT_EQ(interfacesOver(links, 2), (Over{2, 5, 6, 7}));
  EXPECT_EQ(interfacesOver(links, 6), (Over{6, 7})) << "not what is below it";
  EXPECT_EQ(interfacesOver(links, 4), Over{4});
}

TEST(InterfacesOverTest, OtherPortsOfTheBridgeDoNotSitOnThisOne) {
  const std::vector<NetDevice> links{made(5, 0), made(2, 0, 5), made(3, 0, 5)};
  EXPECT_EQ(interfacesOver(links, 2), (Over{2, 5}));
}

TEST(InterfacesOverTest, AnIndexOfAnotherNamespaceMeansNothingHere) {
  NetDevice elsewhere = made(6, 2);
  elsewhere.peer_elsewhere = true;
  EXPECT_EQ(interfacesOver({made(2, 0), elsewhere}, 2), Over{2});
}

TEST(InterfacesOverTest, BothEndsOfAVethNeedEachOtherWithoutEnd) {
  EXPECT_EQ(interfacesOver({made(2, 3), made(3, 2)}, 2), (Over{2, 3}));
}

}  // namespace
}  // namespace faultline::netlink
