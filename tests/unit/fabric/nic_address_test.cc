#include "resilient_ccl/fabric/nic_address.h"

#include <gtest/gtest.h>

namespace faultline::fabric {
namespace {

TEST(NicAddressTest, AnotherAddressTakesThePlaceOfOneThatHasGone) {
  NicAddress nic(10);
  EXPECT_EQ(nic.changed(10, false), std::nullopt);
  EXPECT_EQ(nic.changed(20, true), 20u);
  EXPECT_EQ(nic.changes(), 1u);
}

TEST(NicAddressTest, TheOrderOfComingAndGoingDoesNotMatter) {
  NicAddress nic(10);
  EXPECT_EQ(nic.changed(20, true), std::nullopt);
  EXPECT_EQ(nic.changed(10, false), 20u);
  EXPECT_EQ(nic.changed(20, false), std::nullopt);
  EXPECT_EQ(nic.changed(10, true), 10u);
  EXPECT_EQ(nic.changes(), 2u);
}

TEST(NicAddressTest, AnAddressThatComesBackAndOneThatIsNotOursChangeNothing) {
  NicAddress nic(10);
  EXPECT_EQ(nic.changed(10, false), std::nullopt);
  EXPECT_EQ(nic.changed(10, true), std::nullopt);
  EXPECT_EQ(nic.changed(20, true), std::nullopt);
  EXPECT_EQ(nic.changed(20, false), std::nullopt);
  EXPECT_EQ(nic.changed(10, false), std::nullopt);  // nothing to take its place
  EXPECT_EQ(nic.changes(), 0u);
}

}  // namespace
}  // namespace faultline::fabric
