#include "harness/site/hosts/greeting.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/version.h"
#include "wire/greeting.h"
#include "wire/message.h"

namespace faultline::hosts {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string greetingOf(int version, std::string_view program = versionNumber()) {
  return fmt::format("{}{} {}\n", wire::kGreetingMark, program, version);
}

/// Empty: it greets well; "more": it is not over.
std::string readingOf(const std::string& said) {
  const auto status = readGreeting(said, "n1");
  return status ? (status->ok() ? "" : status->message()) : "more";
}

TEST(GreetingTest, IsWaitedForByteByByte) {
  const std::string whole = greetingOf(wire::kAgentVersion);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(readingOf(whole.substr(0, size)), "more") << size;
  }
  EXPECT_EQ(readingOf(whole), "");
}

TEST(GreetingTest, WhatComesBeforeItIsToldWithItsHost) {
  EXPECT_THAT(
      readingOf("Welcome to n1!\r\n" + greetingOf(wire::kAgentVersion)),
      AllOf(HasSubstr("host n1 says 'Welcome to n1!' before the agent"), HasSubstr("~/.bashrc")));
  EXPECT_EQ(readingOf("Welcome"), "more");
  const std::string endless(100'000, 'x');
  EXPECT_THAT(readingOf(endless), AllOf(HasSubstr("no agent follows"), HasSubstr("...")));
  EXPECT_THAT(readingOf("\x1b[31mred" + greetingOf(wire::kAgentVersion)), Not(HasSubstr("\x1b")));
}

TEST(GreetingTest, AnotherVersionIsRefusedWithBothAndWhatToDo) {
  const int theirs = wire::kAgentVersion + 1;
  EXPECT_THAT(readingOf(greetingOf(theirs)),
              AllOf(HasSubstr(fmt::format("host n1 has faultline {},", versionNumber())),
                    HasSubstr(std::to_string(theirs)),
                    HasSubstr(std::to_string(wire::kAgentVersion)), HasSubstr("install")));
  EXPECT_THAT(
      readingOf(greetingOf(wire::kAgentVersion, "0.0.7")),
      AllOf(HasSubstr("host n1 has faultline 0.0.7"), HasSubstr(std::string(versionNumber()))));
  EXPECT_THAT(readingOf(std::string(wire::kGreetingMark) + "words\n"), HasSubstr("no version"));
  EXPECT_THAT(readingOf(std::string(wire::kGreetingMark) + "1.2 7x\n"), HasSubstr("no version"));
}

TEST(GreetingTest, DoesNotGoOnForEver) {
  const std::string mark(wire::kGreetingMark);
  EXPECT_EQ(readingOf(mark + std::string(256, 'x')), "more");
  EXPECT_THAT(readingOf(mark + std::string(257, 'x')), HasSubstr("which does not end"));
}

TEST(GreetingTest, NothingFollowsBeforeTheFirstMessage) {
  EXPECT_THAT(readingOf(greetingOf(wire::kAgentVersion) + "garbage"),
              HasSubstr("says 'garbage' after the agent's greeting"));
}

}  // namespace
}  // namespace faultline::hosts
