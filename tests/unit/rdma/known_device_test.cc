// A fault's device may be deleted and made again between prepare() and apply().
#include "injector/rdma/known_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace faultline::rdma {
namespace {

using ::testing::HasSubstr;

class KnownDeviceTest : public ::testing::Test {
 protected:
  static KnownDevice rxe(std::uint32_t index) {
    KnownDevice device;
    device.device = {.index = index, .name = "rxe1", .ports = 1, .protocol = "roce"};
    device.port.number = 1;
    device.port.device_index = index;
    device.port.netdev_ifindex = 7;
    device.port.netdev = "rail1";
    device.character.name = "uverbs" + std::to_string(index);
    device.device_class = DeviceClass::kRxe;
    return device;
  }
  /// What becomes of the one with the number 1 when the kernel lists these numbers, and the name
  /// leads to `found`.
  Result<KnownDevice> find(const std::vector<std::uint32_t>& listed, Result<KnownDevice> found) {
    std::vector<Device> devices;
    for (const std::uint32_t index : listed) devices.push_back(rxe(index).device);
    return sameOrMadeAgain(rxe(1), devices, [&] {
      ++look_ups_;
      return found;
    });
  }
  int look_ups_ = 0;
};

TEST_F(KnownDeviceTest, WhatIsThereStaysWhateverElseHasItsName) {
  const auto found = find({0, 1, 2}, rxe(2));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->device.index, 1u);
  EXPECT_EQ(look_ups_, 0);
}

TEST_F(KnownDeviceTest, WhatWasMadeAgainIsTakenAsItIsNow) {
  const auto found = find({0, 2}, rxe(2));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->device.index, 2u);
  EXPECT_EQ(found->port.device_index, 2u);
  EXPECT_EQ(found->character.name, "uverbs2");
  EXPECT_EQ(look_ups_, 1);
}

TEST_F(KnownDeviceTest, AnInterfaceMayHaveAnotherNameNow) {
  KnownDevice renamed = rxe(2);
  renamed.port.netdev = "left";
  EXPECT_TRUE(find({2}, renamed).ok());
}

TEST_F(KnownDeviceTest, WhatIsGoneIsAnErrorThatSaysSo) {
  const Status gone = find({0}, errorf(Code::kNotFound, "there is no RDMA device 'rxe1'")).status();
  EXPECT_EQ(gone.code(), Code::kUnavailable);
  EXPECT_THAT(gone.message(), HasSubstr("rxe1 was deleted since this fault was prepared: there is "
                                        "no RDMA device 'rxe1'; what has deleted it"));
  EXPECT_EQ(find({}, errorf(Code::kIo, "torn")).status().code(), Code::kIo);
}

TEST_F(KnownDeviceTest, AnotherOneOfThatNameIsRefused) {
  KnownDevice elsewhere = rxe(2);
  elsewhere.port.netdev_ifindex = 8;
  elsewhere.port.netdev = "rail0";
  Status refused = find({0, 2}, elsewhere).status();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("it was rxe (RoCE in software) over rail1 (number 7), "
                                           "and is rxe (RoCE in software) over rail0 (number 8)"));
  KnownDevice other_class = rxe(2);
  other_class.device_class = DeviceClass::kSiw;
  refused = find({0, 2}, other_class).status();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("and is siw (iWARP in software) over rail1"));
  KnownDevice nowhere = rxe(2);
  nowhere.port.netdev_ifindex = 0;
  nowhere.port.netdev.clear();
  EXPECT_THAT(find({2}, nowhere).status().message(), HasSubstr("over no network interface"));
}

TEST_F(KnownDeviceTest, PortsAreCountedFromOneToTheLast) {
  Device device = rxe(1).device;
  device.ports = 2;
  EXPECT_TRUE(requirePort(device, 1).ok());
  EXPECT_TRUE(requirePort(device, 2).ok());
  for (const std::uint32_t port : {0u, 3u}) {
    EXPECT_EQ(requirePort(device, port).code(), Code::kNotFound) << port;
  }
  EXPECT_THAT(requirePort(device, 3).message(), HasSubstr("has no port 3: its ports are 1 to 2"));
}

}  // namespace
}  // namespace faultline::rdma
