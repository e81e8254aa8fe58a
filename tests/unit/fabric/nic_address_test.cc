#include "resilient_ccl/fabric/nic_address.h"

#include <gtest/gtest.h>

#include <vector>

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

TEST(NicAddressTest, AListSaysWhatIsThereWhateverWasHeardBefore) {
  const auto listed = [](NicAddress& nic, std::vector<std::uint32_t> addresses) {
    return nic.listed(addresses);
  };
  NicAddress nic(10);
  EXPECT_EQ(listed(nic, {10}), std::nullopt);
  EXPECT_EQ(listed(nic, {10, 20}), std::nullopt);
  EXPECT_EQ(nic.changed(10, false), 20u);  // another one was there before
  EXPECT_EQ(listed(nic, {}), std::nullopt);
  EXPECT_EQ(nic.changed(30, true), 30u) << "20 had gone, by the list";
  EXPECT_EQ(listed(nic, {40, 50}), 50u);
  EXPECT_EQ(nic.changed(60, true), std::nullopt);
  EXPECT_EQ(listed(nic, {50}), std::nullopt);
  EXPECT_EQ(nic.changed(50, false), std::nullopt) << "60 had gone, by the list";
  EXPECT_EQ(nic.changes(), 3u);
}

}  // namespace
}  // namespace faultline::fabric
