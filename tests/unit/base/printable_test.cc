#include "base/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace faultline {
namespace {

TEST(PrintableTest, TextIsLeftAsItIs) {
  for (const char* text : {"", "plain text", "a\tb\nc", "\u00fcber \u2192 \U0001f525 \u4e2d"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(PrintableTest, WhatCommandsATerminalIsShown) {
  EXPECT_EQ(printable("\033[31mred\033[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(printable("\033]0;title\a"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable("one\rtwo\b\x7f"), "one\\x0dtwo\\x08\\x7f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m")
      << "CSI in UTF-8";
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m")
      << "CSI in one byte";
  EXPECT_EQ(printable("\xc2\x85\xc2\x80\xc2\x9f"), "\\u0085\\u0080\\u009f");
}

TEST(PrintableTest, WhatReordersTextIsShown) {
  EXPECT_EQ(printable("a\u202eb\u2066c\u2069\u200f\u061c\u2028"),
            "a\\u202eb\\u2066c\\u2069\\u200f\\u061c\\u2028");
}

TEST(PrintableTest, BytesThatAreNoUtf8AreShown) {
  EXPECT_EQ(printable("\xff\xc0\xaf\xe2\x82"), "\\xff\\xc0\\xaf\\xe2\\x82");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
}

TEST(PrintableTest, JsonStaysTheSameDocument) {
  EXPECT_EQ(printableJson("{\"a\": \"\xc2\x9b\u202e\x7f\u00fc\"}\n"),
            "{\"a\": \"\\u009b\\u202e\\u007f\u00fc\"}\n");
}

TEST(PrintableMessage, AHugeWordOfAUserIsShortenedAndTheRestStays) {
  const std::string huge(100'000, 'x');
  const std::string message = printableMessage("there is no '" + huge + "' here \x1b");
  EXPECT_LT(message.size(), 500u);
  EXPECT_TRUE(message.starts_with("there is no 'xxx")) << message;
  EXPECT_TRUE(message.ends_with("xxx' here \\x1b")) << message;
  EXPECT_EQ(printableMessage("short, as it is\nand two lines"), "short, as it is\nand two lines");
  std::string words;
  for (int i = 0; i < 50'000; ++i) words += "ä ";
  EXPECT_LT(printableMessage(words).size(), 8'100u);
  EXPECT_EQ(printableMessage(words).find("\\x"), std::string::npos) << "no character is cut";
}

}  // namespace
}  // namespace faultline
