#include "resilient_ccl/schedule/ring_all_reduce.h"

#include <gtest/gtest.h>

#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {
namespace {

TEST(SplitTest, PartsAreContiguousAndNearlyEqual) {
  for (const std::int64_t count : {0, 1, 6, 7, 13, 1000}) {
    for (const std::int64_t parts : {1, 2, 3, 7, 16}) {
      std::int64_t next = 5;
      for (std::int64_t i = 0; i < parts; ++i) {
        const Piece part = split({5, count}, parts, i);
        EXPECT_EQ(part.offset, next);
        EXPECT_GE(part.count, count / parts);
        EXPECT_LE(part.count, count / parts + 1);
        next += part.count;
      }
      EXPECT_EQ(next, 5 + count);
    }
  }
}

TEST(SplitTest, HugeBuffersDoNotOverflow) {
  const std::int64_t count = std::int64_t{1} << 61;
  const Piece last = split({0, count}, 1024, 1023);
  EXPECT_EQ(last.offset + last.count, count);
}

TEST(RingAllReduceTest, OneRankOrNoElementsNeedNoOperations) {
  EXPECT_EQ(ringAllReduce(1, 100, 2)->opCount(0, 0), 0);
  EXPECT_EQ(ringAllReduce(4, 0, 2)->opCount(3, 1), 0);
}

TEST(RingAllReduceTest, ALaneWithoutElementsHasNoOperations) {
  const auto ring = ringAllReduce(3, 1, 2);  // lane 0 has 0 elements, lane 1 has 1
  EXPECT_EQ(ring->opCount(0, 0), 0);
  EXPECT_EQ(ring->opCount(0, 1), 8);
}

TEST(RingAllReduceTest, ReceivesComeBeforeTheSendsThatWaitForThem) {
  const auto ring = ringAllReduce(4, 16, 1);
  ASSERT_EQ(ring->opCount(1, 0), 12);
  const Op r0 = ring->op(1, 0, 0);
  EXPECT_EQ(r0.kind, OpKind::kRecvReduce);
  EXPECT_EQ(r0.peer, 0);
  EXPECT_EQ(r0.piece.offset, 0);  // chunk 0
  EXPECT_EQ(r0.piece.count, 4);
  const Op s0 = ring->op(1, 0, 1);
  EXPECT_EQ(s0.kind, OpKind::kSend);
  EXPECT_EQ(s0.peer, 2);
  EXPECT_EQ(s0.piece.offset, 4);  // its own chunk
  EXPECT_EQ(s0.waitCount, 0);
  const Op s1 = ring->op(1, 0, 3);
  EXPECT_EQ(s1.piece.offset, r0.piece.offset);
  ASSERT_EQ(s1.waitCount, 1);
  EXPECT_EQ(s1.waits[0].op, 0);
  EXPECT_EQ(s1.waits[0].count, 4);
  EXPECT_EQ(ring->op(1, 0, 4).kind, OpKind::kRecvReduce);
  EXPECT_EQ(ring->op(1, 0, 6).kind, OpKind::kRecv);
}

}  // namespace
}  // namespace faultline::schedule
