#include "reports/confusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace faultline::reports {
namespace {

using ::testing::EndsWith;
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

TEST(ConfusionTextTest, SharesStandUnderTheirHeading) {
  ConfusionMatrix matrix;
  matrix.columns = {"local_nic", "none"};
  ConfusionMatrix::Row& row = matrix.rows.emplace_back();
  row.fault = "port_down";
  row.end = "own";
  row.counts = {2, 1};
  row.right = {true, false};
  row.places = {.right = 2, .wrong = 1};
  const std::string text = confusionText(matrix);
  const std::size_t table = text.find("\n\n") + 2;
  std::istringstream lines(text.substr(table));
  std::string first, second, counts;
  std::getline(lines, first);
  std::getline(lines, second);
  std::getline(lines, counts);
  EXPECT_THAT(first, EndsWith(" right"));
  EXPECT_THAT(second, EndsWith(" %"));
  EXPECT_THAT(counts, EndsWith(" 66.7"));
  EXPECT_EQ(second.size(), first.size());
  EXPECT_EQ(counts.size(), first.size());
  EXPECT_THAT(text, HasSubstr("fault                  end     right    wrong no place  right %\n"
                              "port_down              own         2        1        0     66.7\n"));
}

TEST(ConfusionPageTest, OnlyNumbersStandAtTheRight) {
  const std::string page = confusionHtml(ConfusionMatrix{});
  EXPECT_THAT(page, HasSubstr("<th>Injected</th><th>Seen from</th><th>Should be</th>"
                              "<th class=\"number\">Right %</th>"));
  EXPECT_THAT(page, HasSubstr("<th>Injected</th><th>Seen from</th><th class=\"number\">n</th>"
                              "<th class=\"number\">detection</th>"));
}

}  // namespace
}  // namespace faultline::reports
