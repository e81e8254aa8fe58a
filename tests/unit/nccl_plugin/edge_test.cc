#include "resilient_ccl/nccl/library/edge.h"

#include <gtest/gtest.h>

#include <new>

namespace faultline::nccl {
namespace {

NetResult call(int* count, bool fails) {
  ++*count;
  if (fails) throw std::bad_alloc();
  return NetResult::kInvalidUsage;
}

TEST(EdgeTest, WhatIsThrownIsAResult) {
  int count = 0;
  EXPECT_EQ(Edge<call>::cross(&count, false), NetResult::kInvalidUsage);
  EXPECT_EQ(Edge<call>::cross(&count, true), NetResult::kSystemError);
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace faultline::nccl
