#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace faultline {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return errorf(Code::kInvalidArgument, "{} is odd", value);
  return value / 2;
}

Result<int> quarter(int value) {
  ASSIGN_OR_RETURN(const int first, half(value));
  ASSIGN_OR_RETURN(const int second, half(first));
  return second;
}

TEST(StatusTest, ErrorsTravelWithTheirMessage) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).status().message(), "3 is odd");
  EXPECT_EQ(quarter(6).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(quarter(12).status().ok());
}

TEST(StatusTest, ContextGoesInFront) {
  EXPECT_EQ(Status(Code::kIo, "disk full").withContext("write x").message(), "write x: disk full");
  EXPECT_TRUE(Status().withContext("anything").ok());
}

TEST(StatusTest, ErrnoBecomesACodeThatCallersCanBranchOn) {
  EXPECT_EQ(Status::fromErrno(EPERM, "unshare").code(), Code::kPermissionDenied);
  EXPECT_EQ(Status::fromErrno(ENETDOWN, "send").code(), Code::kUnavailable);
  EXPECT_NE(Status::fromErrno(ENOSPC, "write").message().find("No space left"), std::string::npos);
}

TEST(ResultTest, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*std::move(result).value(), 5);
}

}  // namespace
}  // namespace faultline
