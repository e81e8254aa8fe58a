#include "injector/rdma/link_deletion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::rdma {
namespace {

constexpr Duration kEver = 20s;

/// Plays the kernel: what it answers, and for how many looks it lists the device.
class AwaitDeletionTest : public ::testing::Test {
 protected:
  Status await(Duration budget = kEver) {
    return awaitDeletion(
        "rxe0", [&] { return answer_; },
        [&]() -> Result<bool> {
          if (!trouble_.ok()) return trouble_;
          return ++looks_ <= listed_for_;
        },
        budget);
  }

  std::optional<Status> answer_;
  Status trouble_;
  int listed_for_ = 0;
  int looks_ = 0;
};

TEST_F(AwaitDeletionTest, WhatNobodyFindsIsGoneThoughSomebodyHasItOpen) {
  listed_for_ = 3;
  EXPECT_TRUE(await().ok());
  EXPECT_EQ(looks_, 4);
}

TEST_F(AwaitDeletionTest, WhatTheKernelHasDeletedMayStillBeListedForAWhile) {
  answer_ = okStatus();
  listed_for_ = 2;
  EXPECT_TRUE(await().ok());
  EXPECT_EQ(looks_, 3);
}

TEST_F(AwaitDeletionTest, WhatTheKernelRefusesIsNotWaitedFor) {
  answer_ = errorf(Code::kPermissionDenied, "no");
  listed_for_ = 1;
  EXPECT_EQ(await().code(), Code::kPermissionDenied);
}

TEST_F(AwaitDeletionTest, WhereNobodyCanLookNothingIsKnown) {
  trouble_ = errorf(Code::kIo, "no list");
  EXPECT_EQ(await().code(), Code::kIo);
}

TEST_F(AwaitDeletionTest, WhatStaysIsGivenUp) {
  listed_for_ = 1'000'000'000;
  const Status late = await(20ms);
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(late.message(), ::testing::HasSubstr("rxe0"));
  EXPECT_GE(looks_, 1);
  EXPECT_LE(looks_, 20) << "between looks others have the processor";
}

}  // namespace
}  // namespace faultline::rdma
