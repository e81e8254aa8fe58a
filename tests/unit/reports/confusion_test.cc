#include "reports/confusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;

TEST(ConfusionTextTest, MarksWhatIsRightAndLeavesOutWhatIsNothing) {
  ConfusionMatrix matrix;
  matrix.columns = {"local_nic", "path", "remote_nic", "none"};
  ConfusionMatrix::Row& row = matrix.rows.emplace_back();
  row.fault = "port_down";
  row.end = "own";
  row.counts = {2, 0, 0, 1};
  row.right = {true, false, true, false};
  EXPECT_THAT(confusionText(matrix),
              HasSubstr("port_down              own     [2]     .     [0]     1 "));
  row.judged = false;
  EXPECT_THAT(confusionText(matrix),
              HasSubstr("port_down              own      2      .      .      1 "))
      << "whatever is found is right";
}

}  // namespace
}  // namespace faultline::reports
