#include "harness/site/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace faultline::site {
namespace {

using ::testing::EndsWith;

TEST(LogLinesTest, EachLineSaysWhereItComesFromHoweverItCame) {
  LogLines lines("n1 rank 3 (job 7): ");
  EXPECT_EQ(lines.add("fir"), "");
  EXPECT_EQ(lines.add("st\nsecond\nthi"), "n1 rank 3 (job 7): first\nn1 rank 3 (job 7): second\n");
  EXPECT_EQ(lines.end(), "n1 rank 3 (job 7): thi\n");
  EXPECT_EQ(lines.end(), "");
}

TEST(LogLinesTest, NothingCommandsATerminalOrIsNoText) {
  LogLines lines(": ");
  EXPECT_EQ(lines.add("a\x1b[2Jb\xff\n"), ": a\\x1b[2Jb\\xff\n");
}

TEST(LogLinesTest, ALongLineIsCutAndTheNextOneIsNot) {
  LogLines lines;
  std::string all;
  for (int i = 0; i < 1000; ++i) all += lines.add("0123456789");
  EXPECT_EQ(all, "") << "kept, and not more than fits";
  all = lines.add("\nnext\n");
  EXPECT_EQ(all.size(), LogLines::kLongest + std::string(" ...\nnext\n").size());
  EXPECT_THAT(all, EndsWith(" ...\nnext\n"));
}

}  // namespace
}  // namespace faultline::site
