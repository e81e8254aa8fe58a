#include "base/executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline {
namespace {

using ::testing::ElementsAre;

TEST(SplitCommandTest, WordsEndAtBlanksOutsideOfQuotes) {
  EXPECT_THAT(*splitCommand("tc  qdisc\tadd"), ElementsAre("tc", "qdisc", "add"));
  EXPECT_THAT(*splitCommand("sh -c 'echo \"a b\" $X'"), ElementsAre("sh", "-c", "echo \"a b\" $X"));
  EXPECT_THAT(*splitCommand(R"(a "b 'c' \" d" e\ f)"), ElementsAre("a", "b 'c' \" d", "e f"));
  EXPECT_THAT(*splitCommand("a '' x''y"), ElementsAre("a", "", "xy"));
}

TEST(SplitCommandTest, WhatIsNoCommandIsAMistake) {
  for (const char* const line : {"", "  \t", "a 'b", "a \"b", "a\\"}) {
    EXPECT_EQ(splitCommand(line).status().code(), Code::kInvalidArgument) << line;
  }
}

}  // namespace
}  // namespace faultline
