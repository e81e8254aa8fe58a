#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/document.h"
#include "harness/scenario/reader.h"
#include "tests/unit/scenario/quickstart.h"

// Files that are made to hurt. All of them must give an error quickly; the bound on the time is the
// timeout of ctest, the bound on the stack is the sanitizer's and the kernel's.
namespace faultline::scenario {
namespace {

using ::testing::HasSubstr;

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string firstMistake(const std::string& yaml) {
  const ReadResult result = readScenario(yaml, "f");
  EXPECT_FALSE(result.ok());
  return result.mistakes.empty() ? "" : result.mistakes.front().toString();
}

TEST(HostileTest, Nothing) {
  for (const char* text : {"", "\n\n", "   ", "\t", "# only a comment\n", "---\n", "...\n"}) {
    EXPECT_THAT(firstMistake(text), HasSubstr("f:")) << text;
  }
}

TEST(HostileTest, Binary) {
  EXPECT_THAT(firstMistake(std::string("version: 1\0name", 15)), HasSubstr("f:1:11: byte 0x00"));
  EXPECT_THAT(firstMistake("\xff\xfev\0e\0"), HasSubstr("f:1:1: byte 0xff"));
  EXPECT_THAT(firstMistake("a: \xc0\xaf"), HasSubstr("f:1:4: byte 0xc0"));
  EXPECT_THAT(firstMistake("a: \xed\xa0\x80"), HasSubstr("not text"));
  EXPECT_THAT(firstMistake("name: \xf5\x80\x80\x80"), HasSubstr("not text"));
  EXPECT_THAT(firstMistake("name: \xe2\x82"), HasSubstr("not text"));
  EXPECT_THAT(firstMistake("\x7f"
                           "ELF\x02\x01\x01"),
              HasSubstr("byte 0x7f"));
}

TEST(HostileTest, TextOutsideOfAsciiIsFine) {
  EXPECT_TRUE(readScenario(minimal("description: \"\u00fcber \u2192 \U0001f525\"\n"), "f").ok());
}

TEST(HostileTest, Huge) {
  EXPECT_THAT(firstMistake(std::string(kMaximumFileBytes + 1, 'x')), HasSubstr("are too many"));
  std::string brackets;
  brackets.resize(500'000'000, '[');
  EXPECT_THAT(firstMistake(brackets), HasSubstr("are too many"));
  EXPECT_THAT(firstMistake(minimal(repeated("# filler\n", 500'000))), HasSubstr("are too many"));
}

TEST(HostileTest, DeeplyNested) {
  for (const char* opening : {"[", "{", "{a: ", "[{", "- ", "? ", "a:\n ", "- - ? ", "[[", "!<a> ",
                              "- !a ", "{? ", "[? ", "&a ", "- &a "}) {
    for (const int times : {17, 1000, 40'000}) {
      EXPECT_FALSE(firstMistake(repeated(opening, times)).empty()) << opening;
    }
  }
  std::string indented;
  for (int i = 0; i < 600; ++i) indented += std::string(i, ' ') + "a:\n";
  EXPECT_THAT(firstMistake(indented), HasSubstr("nested deeper than 16 levels"));
  const std::string closed = "a: " + repeated("[", 5000) + repeated("]", 5000);
  EXPECT_THAT(firstMistake(closed), HasSubstr("f:1:19: nested deeper than 16 levels"));
}

TEST(HostileTest, Aliases) {
  EXPECT_THAT(firstMistake("a: &x [1]\nb: *x\n"), HasSubstr("f:1:4: anchors"));
  EXPECT_THAT(firstMistake("a: *x\n"), HasSubstr("f:1:"));
  std::string bomb = "a0: &a0 [x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before +
            "]\n";
  }
  EXPECT_THAT(firstMistake(bomb), HasSubstr("anchors"));
  EXPECT_THAT(firstMistake("<<: *x\n"), HasSubstr("f:1:"));
}

TEST(HostileTest, Tags) {
  EXPECT_THAT(firstMistake("version: !!int 1\n"), HasSubstr("f:1:10: tags"));
  EXPECT_THAT(firstMistake("version: !evil {a: b}\n"), HasSubstr("tags"));
}

TEST(HostileTest, Many) {
  std::string keys;
  for (int i = 0; i < 20'000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(firstMistake(keys), HasSubstr("more than 10000 values"));
  EXPECT_THAT(firstMistake(minimal("expect: [" + repeated("a, ", 9000) + "]\n")),
              HasSubstr("100 are possible"));
  EXPECT_THAT(firstMistake(minimal("faults: [" + repeated("a, ", 9000) + "]\n")),
              HasSubstr("100 are possible"));
}

TEST(HostileTest, MoreThanOneDocument) {
  EXPECT_THAT(firstMistake(minimal("---\na: b\n")), HasSubstr("f:5:1: a second document"));
  EXPECT_THAT(firstMistake(minimal("...\n[[[[")), HasSubstr("f:"));
}

TEST(HostileTest, BrokenYaml) {
  for (const char* text : {"a: b: c",
                           "a: 'unterminated",
                           "a: [1, 2",
                           "a: {b",
                           "]",
                           "}",
                           "a: \"\\x\"",
                           "%YAML 9.9\n",
                           "%YAML\n",
                           "a: |9999999999\n x",
                           "a: >-+\n",
                           "@",
                           "`",
                           "a: \t- b",
                           "- a\nb: c",
                           "a: 1\n b: 2",
                           "? ",
                           ": ",
                           "-",
                           "--- |",
                           "!",
                           "&",
                           "*",
                           "\"",
                           "'",
                           "a: \"\\uD800\"",
                           "a: \"\\U00110000\""}) {
    EXPECT_FALSE(firstMistake(text).empty()) << text;
  }
}

}  // namespace
}  // namespace faultline::scenario
