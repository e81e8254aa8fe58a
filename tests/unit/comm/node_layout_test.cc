#include "resilient_ccl/comm/node_layout.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace faultline::comm {
namespace {

int layoutOf(const std::vector<std::string>& hosts) { return ranksPerNode(hosts); }

TEST(NodeLayoutTest, RanksInOrderOfTheirNodesAreCounted) {
  EXPECT_EQ(layoutOf({"a"}), 1);
  EXPECT_EQ(layoutOf({"a", "b", "c"}), 1);
  EXPECT_EQ(layoutOf({"a", "a", "a"}), 3);
  EXPECT_EQ(layoutOf({"a", "a", "b", "b"}), 2);
  EXPECT_EQ(layoutOf({"a", "a", "a", "b", "b", "b", "c", "c", "c"}), 3);
}

TEST(NodeLayoutTest, AnyOtherOrderCountsAsOneEach) {
  EXPECT_EQ(layoutOf({}), 1);
  EXPECT_EQ(layoutOf({"a", "b", "a", "b"}), 1);
  EXPECT_EQ(layoutOf({"a", "a", "b"}), 1);
  EXPECT_EQ(layoutOf({"a", "b", "b", "a"}), 1);
  EXPECT_EQ(layoutOf({"a", "a", "b", "b", "a", "a"}), 1) << "a node cannot come twice";
  EXPECT_EQ(layoutOf({"a", "a", "b", "c"}), 1);
}

TEST(NodeLayoutTest, WhoDoesNotSayIsANodeOfItsOwn) {
  EXPECT_EQ(layoutOf({"", ""}), 1);
  EXPECT_EQ(layoutOf({"a", "a", "", ""}), 1);
}

}  // namespace
}  // namespace faultline::comm
