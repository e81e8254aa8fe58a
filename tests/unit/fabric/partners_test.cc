#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "idle_client.h"
#include "loopback.h"
#include "resilient_ccl/fabric/fabric.h"

// The order in which rails take over from each other, from where the NICs sit to the link.

namespace faultline::fabric {
namespace {

using Partners = std::vector<std::vector<int>>;

class PartnersTest : public ::testing::Test {
 protected:
  /// Rails over these cards; none of them is a device of this machine.
  void start(const std::vector<std::string>& cards, Partners chosen = {}) {
    FabricOptions options;
    options.jobKey = auth::JobKey::random();
    for (const std::string& card : cards) {
      options.nics.push_back({.device = "", .address = kLoopback, .card = card});
    }
    options.managementAddress = kLoopback;
    std::ifstream file(FAULTLINE_SOURCE_DIR "/tests/data/topology/two_sockets.xml");
    options.topology = (std::ostringstream() << file.rdbuf()).str();
    options.link.partners = std::move(chosen);
    auto created = Fabric::create(options, client_);
    ASSERT_TRUE(created.ok()) << created.status().message();
    fabric_ = std::move(*created);
    const ProcessAddress address = fabric_->address();
    ASSERT_TRUE(fabric_->connect({address, address, address}).ok());
  }

  IdleClient client_;
  std::unique_ptr<Fabric> fabric_;
};

#ifdef FAULTLINE_HWLOC

TEST_F(PartnersTest, TheNearestCardTakesOverFirstInEveryLink) {
  start({"nic0", "nic1", "nic2", "nic3"});
  for (const int peer : {1, 2}) {
    EXPECT_EQ(fabric_->linkOptions(peer).partners,
              (Partners{{2, 3, 1}, {3, 2, 0}, {0, 3, 1}, {0, 2, 1}}));
  }
  EXPECT_TRUE(fabric_->counters().nicDistancesKnown);
}

TEST_F(PartnersTest, OfThreeRailsEachHasAChoice) {
  start({"nic0", "nic1", "nic2"});
  EXPECT_EQ(fabric_->linkOptions(1).partners, (Partners{{2, 1}, {2, 0}, {0, 1}}));
  EXPECT_TRUE(fabric_->counters().nicDistancesKnown);
}

TEST_F(PartnersTest, RailsMayUseTheCardsInAnyOrder) {
  start({"nic0", "nic3", "nic1", "nic2"});
  EXPECT_EQ(fabric_->linkOptions(1).partners,
            (Partners{{3, 1, 2}, {3, 0, 2}, {1, 3, 0}, {0, 1, 2}}));
}

#endif

TEST_F(PartnersTest, WhatIsAskedForOutweighsTheTopology) {
  const Partners chosen{{3, 2, 1}, {0, 3, 2}, {1, 0, 3}, {2, 1, 0}};
  start({"nic0", "nic1", "nic2", "nic3"}, chosen);
  EXPECT_EQ(fabric_->linkOptions(1).partners, chosen);
  EXPECT_FALSE(fabric_->counters().nicDistancesKnown);
}

TEST_F(PartnersTest, ACardThatIsNotInTheTopologyLeavesTheOrderOfNumbers) {
  start({"nic0", "nic1", "nic2", "elsewhere"});
  EXPECT_EQ(fabric_->linkOptions(1).partners,
            (Partners{{1, 2, 3}, {2, 3, 0}, {3, 0, 1}, {0, 1, 2}}));
  EXPECT_FALSE(fabric_->counters().nicDistancesKnown);
}

}  // namespace
}  // namespace faultline::fabric
