#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace faultline {
namespace {

using ::testing::HasSubstr;

std::string nested(std::size_t levels, const std::string& open, const std::string& close) {
  std::string text;
  for (std::size_t i = 0; i < levels; ++i) text += open;
  text += "1";
  for (std::size_t i = 0; i < levels; ++i) text += close;
  return text;
}

TEST(ParseJsonTest, DepthIsBounded) {
  EXPECT_TRUE(parseJson(nested(kMostJsonLevels, "[", "]")).ok());
  EXPECT_TRUE(parseJson(nested(kMostJsonLevels, "{\"a\":", "}")).ok());
  for (const auto& text : {nested(200'000, "[", "]"), nested(200'000, "{\"a\":", "}"),
                           std::string(200'000, '['), nested(kMostJsonLevels + 1, "[", "]")}) {
    EXPECT_THAT(parseJson(text).status().message(), HasSubstr("nested deeper than 200 levels"));
  }
  EXPECT_THAT(parseJson("\n" + nested(201, "[", "]")).status().message(),
              HasSubstr("line 2, column 201"));
}

TEST(ParseJsonTest, BracketsInStringsAndBesideEachOtherAreNoLevels) {
  EXPECT_TRUE(
      parseJson("\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"").ok());
  std::string flat = "[[]";
  for (int i = 0; i < 1000; ++i) flat += ",[{}]";
  EXPECT_TRUE(parseJson(flat + "]").ok());
}

TEST(ParseJsonTest, WhatIsNoJsonIsAnErrorWithItsPlace) {
  EXPECT_THAT(parseJson("[1,\n x]").status().message(), HasSubstr("line 2"));
  EXPECT_FALSE(parseJson("").ok());
}

}  // namespace
}  // namespace faultline
