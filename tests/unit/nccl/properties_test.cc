#include "resilient_ccl/nccl/properties.h"

#include <gtest/gtest.h>

namespace faultline::nccl {
namespace {

template <typename Properties>
class NcclPropertiesTest : public ::testing::Test {};

using Versions = ::testing::Types<NetPropertiesV10, NetPropertiesV11, NetPropertiesV12>;
TYPED_TEST_SUITE(NcclPropertiesTest, Versions);

// By these NCCL places NICs among GPUs, and takes two with the same guid and port for one.
TYPED_TEST(NcclPropertiesTest, AreThoseOfTheNic) {
  const Device device{.interface = {.name = "eth7"},
                      .pciPath = "/sys/devices/pci0000:17/0000:17:00.1",
                      .guid = 0x1700,
                      .speed = 200'000,
                      .port = 1};
  const auto its = propertiesOf<TypeParam>(device, 3);
  EXPECT_STREQ(its.name, "eth7");
  EXPECT_STREQ(its.pciPath, "/sys/devices/pci0000:17/0000:17:00.1");
  EXPECT_EQ(its.guid, 0x1700U);
  EXPECT_EQ(its.speed, 200'000);
  EXPECT_EQ(its.port, 1);
  EXPECT_EQ(its.virtualDevice.count, 1);
  EXPECT_EQ(its.virtualDevice.devices[0], 3);
  if constexpr (requires { its.railId; }) {
    EXPECT_EQ(its.railId, 3);
  }
}

TYPED_TEST(NcclPropertiesTest, ANicThatIsNotOnPciHasNoPath) {
  const Device device{.interface = {.name = "veth0"}, .pciPath = {}};
  EXPECT_EQ(propertiesOf<TypeParam>(device, 0).pciPath, nullptr);
}

}  // namespace
}  // namespace faultline::nccl
