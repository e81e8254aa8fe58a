#include "harness/cli/queue_pair_list.h"

#include <gtest/gtest.h>

namespace faultline::cli {
namespace {

constexpr int kNoProcess = 999'999'999;
// The kernel knows no addresses; the shim has read them from the queue pair.
const QueuePairRow kOfKernel{"rxe0", 17, "RC", "RTS", 18, {}, {}, false};
const QueuePairRow kOfShim{"rxe0", 17, "RC", "INIT", 18, 0, "::ffff:10.0.0.2", true};

TEST(QueuePairListTest, TheBlanksOfTheKernelsRowAreFilledFromTheShim) {
  const QueuePairRow filled{"rxe0", 17, "RC", "RTS", 18, 0, "::ffff:10.0.0.2", true};
  EXPECT_EQ(merge({kOfKernel}, {kOfShim}), std::vector{filled}) << "and the state is the kernel's";
}

TEST(QueuePairListTest, APeerThatTheKernelDoesNotTellIsTheShims) {
  QueuePairRow unknown = kOfKernel;
  unknown.peerNumber.reset();
  EXPECT_EQ(merge({unknown}, {kOfShim}).front().peerNumber, 18u);
  QueuePairRow other = kOfShim;
  other.peerNumber = 19;
  EXPECT_EQ(merge({kOfKernel}, {other}).front().peerNumber, 18u);
}

TEST(QueuePairListTest, WhatTheShimDoesNotKnowIsMarkedSo) {
  QueuePairRow of_other_device = kOfShim;
  of_other_device.device = "rxe1";
  QueuePairRow of_other_number = kOfShim;
  of_other_number.number = 18;
  EXPECT_EQ(merge({kOfKernel}, {}), std::vector{kOfKernel});
  EXPECT_EQ(merge({kOfKernel}, {of_other_device, of_other_number}),
            (std::vector{kOfKernel, of_other_device, of_other_number}))
      << "and what the shim alone knows comes after it";
}

// Nobody can be asked here: there is no such process.
TEST(QueuePairListTest, TheErrorIsTheShimsAndTheKernelsIsTold) {
  const auto found = listQueuePairs(kNoProcess);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), Code::kNotFound);
  EXPECT_NE(found.status().message().find("the kernel (RDMA netlink): "), std::string::npos);
  EXPECT_NE(found.status().message().find("there is no process 999999999"), std::string::npos);
}

}  // namespace
}  // namespace faultline::cli
