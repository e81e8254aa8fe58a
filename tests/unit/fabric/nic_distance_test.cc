#include "resilient_ccl/fabric/topology/nic_distance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "resilient_ccl/channel/partners.h"

namespace faultline::fabric {
namespace {

std::string twoSockets() {
  std::ifstream file(FAULTLINE_SOURCE_DIR "/tests/data/topology/two_sockets.xml");
  return (std::ostringstream() << file.rdbuf()).str();
}

#ifdef FAULTLINE_HWLOC

TEST(NicDistanceTest, SamePcieSwitchThenSameSocketThenTheRest) {
  const auto distances = nicDistancesIn(twoSockets(), {"nic0", "nic1", "nic2", "nic3"});
  ASSERT_TRUE(distances.ok()) << distances.status().message();
  const auto& from0 = (*distances)[0];
  EXPECT_LT(from0[0], from0[2]) << "itself";
  EXPECT_LT(from0[2], from0[3]) << "below one bridge, against two of one socket";
  EXPECT_LT(from0[3], from0[1]) << "one socket, against two";
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) EXPECT_EQ((*distances)[a][b], (*distances)[b][a]);
  }
  EXPECT_EQ(channel::partnersByDistance(*distances),
            (std::vector<std::vector<int>>{{2, 3, 1}, {3, 2, 0}, {0, 3, 1}, {0, 2, 1}}));
}

TEST(NicDistanceTest, WhatIsNotInTheTopologyIsNamed) {
  const auto distances = nicDistancesIn(twoSockets(), {"nic0", "rail7"});
  ASSERT_FALSE(distances.ok());
  EXPECT_EQ(distances.status().code(), Code::kUnavailable);
  EXPECT_THAT(distances.status().message(), testing::HasSubstr("rail7"));
  EXPECT_FALSE(nicDistancesIn("this is no XML", {"nic0"}).ok());
}

#endif

TEST(NicDistanceTest, VirtualDevicesHaveNone) {
  for (const std::string device : {"lo", "", "no-such-device"}) {
    const auto distances = nicDistances({device});
    ASSERT_FALSE(distances.ok()) << device;
    EXPECT_EQ(distances.status().code(), Code::kUnavailable);
  }
}

}  // namespace
}  // namespace faultline::fabric
