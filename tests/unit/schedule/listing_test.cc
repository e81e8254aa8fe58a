#include "resilient_ccl/schedule/listing.h"

#include <gtest/gtest.h>

#include "resilient_ccl/schedule/ring_all_reduce.h"

namespace faultline::schedule {
namespace {

TEST(ListingTest, OneLinePerOperation) {
  EXPECT_EQ(listLane(*ringAllReduce(2, 8, 1), 0, 0, -1),
            "rank 0 lane 0: 4 operations\n"
            "     0  recvReduce  from 1     [4, 8)\n"
            "     1  send        to 1       [0, 4)\n"
            "     2  recv        from 1     [0, 4)\n"
            "     3  send        to 1       [4, 8)  after 0.0:4\n");
}

TEST(ListingTest, LongLanesAreCut) {
  EXPECT_EQ(listLane(*ringAllReduce(4, 8, 1), 0, 0, 1),
            "rank 0 lane 0: 12 operations\n"
            "     0  recvReduce  from 3     [6, 8)\n"
            "  ... 11 more\n");
}

}  // namespace
}  // namespace faultline::schedule
