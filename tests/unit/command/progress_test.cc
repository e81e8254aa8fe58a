#include "harness/command/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::command {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// The file as it is now, seen from where the reader wants to see it.
std::vector<int> look(ProgressLines& lines, const std::string& file) {
  const auto from = static_cast<std::size_t>(lines.offset());
  return *lines.read(from > file.size() ? "" : file.substr(from));
}

TEST(ProgressLinesTest, ReadsWhatIsAppended) {
  ProgressLines lines;
  EXPECT_THAT(look(lines, ""), IsEmpty());
  EXPECT_THAT(look(lines, "0\n"), ElementsAre(0));
  EXPECT_THAT(look(lines, "0\n"), IsEmpty());
  EXPECT_THAT(look(lines, "0\n1\n2\n"), ElementsAre(1, 2));
  EXPECT_THAT(look(lines, "0\n1\n2\n2\n"), ElementsAre(2));
}

TEST(ProgressLinesTest, ALineCountsWhenItIsEnded) {
  ProgressLines lines;
  EXPECT_THAT(look(lines, "0\n1"), ElementsAre(0));
  EXPECT_THAT(look(lines, "0\n12\n"), ElementsAre(12));
}

TEST(ProgressLinesTest, ReadsAFileThatIsWrittenAnew) {
  ProgressLines lines;
  EXPECT_THAT(look(lines, "7\n"), ElementsAre(7));
  EXPECT_THAT(look(lines, "8\n"), IsEmpty());  // seen to be another one: from its begin next time
  EXPECT_THAT(look(lines, "8\n"), ElementsAre(8));
  EXPECT_THAT(look(lines, ""), IsEmpty());
  EXPECT_THAT(look(lines, "9\n"), ElementsAre(9));
}

TEST(ProgressLinesTest, WhatIsNoNumberIsAnError) {
  for (const char* text : {"one\n", "-1\n", "\n", "1 2\n", "99999999999\n"}) {
    ProgressLines lines;
    EXPECT_FALSE(lines.read(text).ok()) << text;
  }
}

}  // namespace
}  // namespace faultline::command
