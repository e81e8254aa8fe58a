#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/scenario/reader.h"

namespace faultline::scenario {

/// What is wrong with this text, of a file "f", before it is run.
inline std::vector<std::string> mistakesOf(const std::string& yaml) {
  std::vector<std::string> lines;
  for (const Mistake& mistake : readScenario(yaml, "f", {}, RunsOn::kThisMachine).mistakes) {
    lines.push_back(mistake.toString());
  }
  return lines;
}

/// One mistake, told once: at this place ("line:column"), and with these words.
inline void expectMistake(const std::string& yaml, const std::string& place,
                          const std::string& words) {
  SCOPED_TRACE(yaml);
  const std::vector<std::string> mistakes = mistakesOf(yaml);
  ASSERT_EQ(mistakes.size(), 1u) << ::testing::PrintToString(mistakes);
  EXPECT_TRUE(mistakes[0].starts_with("f:" + place + ": ")) << mistakes[0];
  EXPECT_THAT(mistakes[0], ::testing::HasSubstr(words));
}

}  // namespace faultline::scenario
