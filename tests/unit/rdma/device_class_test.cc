#include "injector/rdma/device_class.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rdma/ib_user_ioctl_verbs.h>

namespace faultline::rdma {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr DeviceClass kHardware[] = {DeviceClass::kMlx5Roce, DeviceClass::kOtherEthernet,
                                     DeviceClass::kInfiniband};

TEST(DeviceClassTest, FollowsFromDriverAndProtocol) {
  EXPECT_EQ(classify(RDMA_DRIVER_RXE, "roce"), DeviceClass::kRxe);
  EXPECT_EQ(classify(RDMA_DRIVER_SIW, "iw"), DeviceClass::kSiw);
  EXPECT_EQ(classify(RDMA_DRIVER_MLX5, "roce"), DeviceClass::kMlx5Roce);
  EXPECT_EQ(classify(RDMA_DRIVER_MLX5, "ib"), DeviceClass::kInfiniband);
  EXPECT_EQ(classify(RDMA_DRIVER_HFI1, "opa"), DeviceClass::kInfiniband);
  EXPECT_EQ(classify(RDMA_DRIVER_BNXT_RE, "roce"), DeviceClass::kOtherEthernet);
  EXPECT_EQ(classify(4711, "future"), DeviceClass::kOtherEthernet);
}

TEST(DeviceClassTest, TrafficControlIsForSoftwareOnlyAndTheRefusalSaysWhy) {
  EXPECT_TRUE(requireTrafficControl({"rxe0", DeviceClass::kRxe}, "netem").ok());
  EXPECT_TRUE(requireTrafficControl({"siw0", DeviceClass::kSiw}, "netem").ok());
  for (const DeviceClass hardware : kHardware) {
    const Status refusal = requireTrafficControl({"mlx5_3", hardware}, "netem");
    EXPECT_EQ(refusal.code(), Code::kUnsupported);
    EXPECT_THAT(refusal.message(),
                AllOf(HasSubstr("netem of mlx5_3"), HasSubstr("never pass through")));
  }
}

TEST(DeviceClassTest, DropsAreFiltersInSoftwareAndRulesInMlx5) {
  for (const bool only_roce : {false, true}) {
    EXPECT_EQ(*dropMechanism({"rxe0", DeviceClass::kRxe}, only_roce),
              DropMechanism::kTrafficControl);
    for (const DeviceClass other : {DeviceClass::kOtherEthernet, DeviceClass::kInfiniband}) {
      const Status refusal = dropMechanism({"x0", other}, only_roce).status();
      EXPECT_EQ(refusal.code(), Code::kUnsupported);
      EXPECT_THAT(refusal.message(), AllOf(HasSubstr("x0"), HasSubstr("in the switch")));
    }
  }
  EXPECT_EQ(*dropMechanism({"siw0", DeviceClass::kSiw}, false), DropMechanism::kTrafficControl);
  EXPECT_EQ(*dropMechanism({"mlx5_0", DeviceClass::kMlx5Roce}, true), DropMechanism::kSteeringRule);
}

TEST(DeviceClassTest, FramesThatADeviceDoesNotSendAreNotDropped) {
  const Status siw = dropMechanism({"siw0", DeviceClass::kSiw}, /*only_roce=*/true).status();
  EXPECT_EQ(siw.code(), Code::kUnsupported);
  EXPECT_THAT(siw.message(), AllOf(HasSubstr("siw0"), HasSubstr("say 'frames: all'")));
  const Status mlx5 =
      dropMechanism({"mlx5_0", DeviceClass::kMlx5Roce}, /*only_roce=*/false).status();
  EXPECT_EQ(mlx5.code(), Code::kUnsupported);
  EXPECT_THAT(mlx5.message(), AllOf(HasSubstr("mlx5_0"), HasSubstr("say 'frames: roce'")));
}

TEST(DeviceClassTest, RatesAreQueuesInSoftwareAndDcbOnEthernetAdapters) {
  EXPECT_EQ(*rateMechanism({"rxe0", DeviceClass::kRxe}), RateMechanism::kTrafficControl);
  EXPECT_EQ(*rateMechanism({"mlx5_0", DeviceClass::kMlx5Roce}), RateMechanism::kDcbMaxrate);
  EXPECT_EQ(*rateMechanism({"bnxt_re0", DeviceClass::kOtherEthernet}), RateMechanism::kDcbMaxrate);
  const Status refusal = rateMechanism({"ibp0", DeviceClass::kInfiniband}).status();
  EXPECT_EQ(refusal.code(), Code::kUnsupported);
  EXPECT_THAT(refusal.message(), AllOf(HasSubstr("Ethernet's"), HasSubstr("ibportstate")));
}

TEST(DeviceClassTest, APortOfInfinibandDoesNotFollowAnInterface) {
  EXPECT_TRUE(requirePortOfNetdev({"rxe0", DeviceClass::kRxe}).ok());
  EXPECT_TRUE(requirePortOfNetdev({"mlx5_0", DeviceClass::kMlx5Roce}).ok());
  const Status refusal = requirePortOfNetdev({"mlx5_0", DeviceClass::kInfiniband});
  EXPECT_EQ(refusal.code(), Code::kUnsupported);
  EXPECT_THAT(refusal.message(), HasSubstr("ibportstate -C mlx5_0"));
}

TEST(DeviceClassTest, OnlySoftwareIsDeleted) {
  EXPECT_TRUE(requireDeletable({"rxe0", DeviceClass::kRxe}).ok());
  EXPECT_EQ(linkType(DeviceClass::kRxe), "rxe");
  EXPECT_EQ(linkType(DeviceClass::kSiw), "siw");
  for (const DeviceClass hardware : kHardware) {
    EXPECT_EQ(linkType(hardware), "");
    const Status refusal = requireDeletable({"mlx5_0", hardware});
    EXPECT_EQ(refusal.code(), Code::kUnsupported);
    EXPECT_THAT(refusal.message(),
                AllOf(HasSubstr("deletes only devices in software"), HasSubstr("rdma_port_down")));
  }
}

}  // namespace
}  // namespace faultline::rdma
