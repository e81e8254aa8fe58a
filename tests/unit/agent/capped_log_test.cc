#include "harness/agent/capped_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace faultline::agent {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(CappedLogTest, ALittleIsPassedOnAtOnceAndWhole) {
  CappedLog log;
  EXPECT_EQ(log.add("one\n"), "one\n");
  EXPECT_EQ(log.add("two"), "two");
  EXPECT_EQ(log.rest(), "");
}

TEST(CappedLogTest, OfMuchTheBeginningAndTheEndAreLeftAndWhatIsMissingIsTold) {
  CappedLog log;
  std::string passed;
  std::size_t all = 0;
  for (int line = 0; all < 64 * CappedLog::kBeginning; ++line) {
    const std::string text = "line " + std::to_string(line) + " " + std::string(90, '.') + "\n";
    passed += log.add(text);
    all += text.size();
  }
  all += 9;
  passed += log.add("the last\n");
  const std::string rest = log.rest();
  EXPECT_THAT(passed, HasSubstr("line 0 ."));
  EXPECT_LE(passed.size(), CappedLog::kBeginning);
  EXPECT_GT(passed.size(), CappedLog::kBeginning / 2);
  EXPECT_THAT(rest, EndsWith("\nthe last\n"));
  EXPECT_LE(rest.size(), CappedLog::kEnd + 100);
  // "\n[N bytes are left out here]\n" and the end: all that came is accounted for.
  const std::size_t note = rest.find("]\n");
  ASSERT_NE(note, std::string::npos);
  const std::size_t missing = std::stoull(rest.substr(2));
  EXPECT_EQ(passed.size() + missing + (rest.size() - note - 2), all);
}

TEST(CappedLogTest, LinesWithoutTextAreNotFree) {
  CappedLog log;
  const std::string lines(4 * CappedLog::kBeginning, '\n');
  const std::size_t most = CappedLog::kBeginning / CappedLog::kLineCost;
  EXPECT_LE(log.add(lines).size(), most);
  EXPECT_LE(log.rest().size(), CappedLog::kEnd / CappedLog::kLineCost + 100);
}

TEST(CappedLogTest, NothingIsMissingOfWhatFitsInBothParts) {
  CappedLog log;
  const std::string text(CappedLog::kBeginning + CappedLog::kEnd / 2, 'x');
  const std::string begin(log.add(text));
  EXPECT_EQ(begin + log.rest(), text);
}

}  // namespace
}  // namespace faultline::agent
