#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/cli/rdma_injection.h"

namespace faultline::cli {
namespace {

using ::testing::HasSubstr;

Result<rdma::RdmaTarget> read(const std::string& text) {
  const auto target = parseTarget(text);
  EXPECT_TRUE(target.ok()) << target.status().message();
  return rdmaTarget("rdma_port_down", *target);
}

TEST(RdmaTargetTest, IsADeviceAndItsFirstPort) {
  const auto target = read("dev=rxe0");
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_EQ(target->device, "rxe0");
  EXPECT_EQ(target->port, 1u);
  EXPECT_EQ(target->other_end, "");
}

TEST(RdmaTargetTest, NamesAnotherPortAndWhoIsAtTheOtherEnd) {
  const auto target = read("other_end=mlx5_1,port=2,dev=mlx5_0");
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_EQ(target->device, "mlx5_0");
  EXPECT_EQ(target->port, 2u);
  EXPECT_EQ(target->other_end, "mlx5_1");
}

TEST(RdmaTargetTest, WhatIsNoneIsRefused) {
  for (const char* const port : {"0", "-1", "x", "1x", "4294967296"}) {
    const auto target = read("dev=rxe0,port=" + std::string(port));
    EXPECT_EQ(target.status().code(), Code::kInvalidArgument) << port;
    EXPECT_THAT(target.status().message(), HasSubstr("'" + std::string(port) + "' is no number"));
  }
  const auto nobody = read("port=1,other_end=rxe1");
  EXPECT_EQ(nobody.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(nobody.status().message(), HasSubstr("which RDMA device"));
  const auto other = read("dev=rxe0,qpn=17");
  EXPECT_EQ(other.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(other.status().message(), HasSubstr("rdma_port_down has no 'qpn'"));
}

TEST(RdmaTargetTest, EveryKindBecomesAFault) {
  for (const char* const kind : {"rdma_port_down", "rdma_silent_drop", "rdma_link_delete"}) {
    const auto injection = makeInjection(kind, "dev=rxe0,port=2", {});
    ASSERT_TRUE(injection.ok()) << injection.status().message();
    EXPECT_EQ(injection->kind->name, kind);
    EXPECT_NE(injection->fault, nullptr);
    EXPECT_EQ(injection->target.at("port"), "2");
  }
  const auto throttle = makeInjection("rdma_throttle", "dev=rxe0", {"rate=1Mbit"});
  ASSERT_TRUE(throttle.ok()) << throttle.status().message();
  EXPECT_NE(throttle->fault, nullptr);
  EXPECT_EQ(makeInjection("rdma_throttle", "dev=rxe0", {}).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace faultline::cli
