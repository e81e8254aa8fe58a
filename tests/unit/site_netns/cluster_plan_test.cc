#include "harness/site/netns/cluster_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace faultline::netns {
namespace {

TEST(ClusterPlanTest, AddressesAreUniqueAndRailsHaveSubnetsOfTheirOwn) {
  std::set<std::string> addresses;
  for (int node = 0; node < site::kMost.nodes; ++node) {
    EXPECT_TRUE(addresses.insert(managementAddress(node)).second);
    for (int rail = 0; rail < site::kMost.rails; ++rail) {
      EXPECT_TRUE(addresses.insert(railAddress(node, rail)).second);
    }
  }
  EXPECT_EQ(railAddress(0, 0), "10.1.0.1");
  EXPECT_EQ(railAddress(2, 1), "10.2.0.3");
  EXPECT_EQ(railAddress(255, 1), "10.2.1.0");
  EXPECT_EQ(managementAddress(1), "10.0.0.2");
}

TEST(ClusterPlanTest, NoPortHasTheIndexOfItsOtherEndAndNoneIsGivenTwice) {
  std::set<int> switch_indexes{1, kManagementBridgeIndex};
  for (int rail = 0; rail < site::kMost.rails; ++rail) {
    EXPECT_TRUE(switch_indexes.insert(railBridgeIndex(rail)).second);
  }
  for (int node = 0; node < site::kMost.nodes; ++node) {
    EXPECT_TRUE(switch_indexes.insert(managementPortIndex(node)).second);
    EXPECT_NE(managementPortIndex(node), kManagementIndex);
    for (int rail = 0; rail < site::kMost.rails; ++rail) {
      EXPECT_TRUE(switch_indexes.insert(railPortIndex(node, rail)).second);
      EXPECT_NE(railPortIndex(node, rail), railIndex(rail));
    }
  }
}

TEST(ClusterPlanTest, NamesFitTheKernel) {
  constexpr std::size_t kLongestName = 15;  // IFNAMSIZ - 1
  EXPECT_LE(railPortName(site::kMost.nodes - 1, site::kMost.rails - 1).size(), kLongestName);
  EXPECT_LE(managementPortName(site::kMost.nodes - 1).size(), kLongestName);
}

TEST(ClusterPlanTest, ImpossibleSpecsSayWhatIsPossible) {
  ClusterSpec spec;
  EXPECT_TRUE(spec.check().ok());
  spec.nodes = 0;
  EXPECT_EQ(spec.check().code(), Code::kInvalidArgument);
  EXPECT_THAT(spec.check().message(), ::testing::HasSubstr("1 to 64"));
  spec = {.rail_rate = 5};
  EXPECT_EQ(spec.check().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace faultline::netns
