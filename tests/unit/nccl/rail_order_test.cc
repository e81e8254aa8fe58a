#include "resilient_ccl/nccl/rail_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::nccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint32_t kHere0 = 0x0a000001, kHere1 = 0x0a000101, kHere2 = 0x0a000201;
constexpr std::uint32_t kThere0 = 0x0a000002, kThere1 = 0x0a000102, kThere2 = 0x0a000202;

std::vector<RailSubnet> rails(int prefix = 24) {
  return {{"rail 0 (eth0)", kHere0, prefix},
          {"rail 1 (eth1)", kHere1, prefix},
          {"rail 2 (eth2)", kHere2, prefix}};
}

TEST(RailOrderTest, RailsOfOneNumberInOneSubnetAreInOrder) {
  EXPECT_EQ(crossedRails(rails(), {kThere0, kThere1, kThere2}), "");
  EXPECT_EQ(crossedRails(rails(), {kThere0}), "");
}

TEST(RailOrderTest, CrossedRailsAreNamedWithWhereTheyBelong) {
  EXPECT_THAT(
      crossedRails(rails(), {kThere1, kThere0, kThere2}),
      AllOf(HasSubstr("its rail 0 (10.0.1.2) is in the subnet of this node's rail 1 (eth1)"),
            HasSubstr("its rail 1 (10.0.0.2) is in the subnet of this node's rail 0 (eth0)"),
            HasSubstr("FAULTLINE_NICS"), Not(HasSubstr("its rail 2"))));
}

TEST(RailOrderTest, OfRoutedRailsNothingIsSaid) {
  const std::uint32_t elsewhere = 0x0a090901;
  EXPECT_EQ(crossedRails(rails(), {elsewhere, elsewhere + 256, elsewhere + 512}), "");
  EXPECT_EQ(crossedRails(rails(31), {kHere1 ^ 1, kHere0 ^ 1}), "");
  EXPECT_EQ(crossedRails(rails(0), {kThere1, kThere0}), "");
}

TEST(RailOrderTest, InOneSubnetForAllNoneIsCrossed) {
  EXPECT_EQ(crossedRails(rails(16), {kThere1, kThere2, kThere0}), "");
}

}  // namespace
}  // namespace faultline::nccl
