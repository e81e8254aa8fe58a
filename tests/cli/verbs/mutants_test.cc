// What edits the nightly mutation script makes (ci/nightly/mutants.awk).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Ran;
using testing::TemporaryFolder;

/// The source after each of the edits, as "KIND: LINE".
std::vector<std::string> edited(const std::string& source) {
  const TemporaryFolder folder;
  const std::string file = folder.write("sample.cc", source);
  const Ran ran = testing::runProgram(
      "/bin/sh",
      {"-c", "awk -f \"$1\" \"$2\"", "sh", FAULTLINE_SOURCE_DIR "/ci/nightly/mutants.awk", file});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  std::vector<std::string> lines;
  std::istringstream whole(source);
  for (std::string line; std::getline(whole, line);) lines.push_back(line);
  std::vector<std::string> edits;
  std::istringstream told(ran.out);
  for (std::string edit; std::getline(told, edit);) {
    std::vector<std::string> fields;
    std::istringstream parts(edit);
    for (std::string field; std::getline(parts, field, '\t');) fields.push_back(field);
    if (fields.size() < 6) {
      ADD_FAILURE() << edit;
      continue;
    }
    EXPECT_EQ(fields[0], file);
    std::string line = lines.at(std::stoul(fields[1]) - 1);
    line.replace(std::stoul(fields[2]) - 1, std::stoul(fields[3]), fields[5]);
    edits.push_back(fields[4] + ": " + line.substr(line.find_first_not_of(' ')));
  }
  std::ranges::sort(edits);
  return edits;
}

TEST(MutantsTest, ConditionsAreTurnedAroundShiftedAndLeftOut) {
  EXPECT_THAT(edited("  if (a == 1 && !b) return;\n"),
              ElementsAre("compare: if (a != 1 && !b) return;",
                          "constant: if (a == 2 && !b) return;", "logic: if (a == 1 || !b) return;",
                          "negate: if (!(a == 1 && !b)) return;", "remove: ;"));
  EXPECT_THAT(edited("  x = a <= b || c > d;\n"),
              ElementsAre("compare: x = a < b || c > d;", "compare: x = a <= b || c >= d;",
                          "logic: x = a <= b && c > d;", "remove: ;"));
  // What it declares is used behind it.
  EXPECT_THAT(edited("  if (const auto x = f(); x) {\n"), IsEmpty());
}

TEST(MutantsTest, StatementsAndWholeFunctionsDoNothing) {
  EXPECT_THAT(
      edited("void Class::run(int a) const {\n  ++count_;\n  close(a);\n  done_ = true;\n"),
      ElementsAre("boolean: done_ = false;", "leave: void Class::run(int a) const { return;",
                  "remove: ;", "remove: ;", "remove: ;"));
  // A part of one, or what belongs to the line before it, is none.
  EXPECT_THAT(edited("  call(a,\n       b);\n  if (x)\n    call(a);\n"),
              ElementsAre("negate: if (!(x))"));
  EXPECT_THAT(edited("  const int x = f(y);\n  return f(y);\n  using a = b;\n"), IsEmpty());
}

TEST(MutantsTest, NumbersAndArithmeticChange) {
  EXPECT_THAT(
      edited("  return a + 1 - b * 20;\n"),
      ElementsAre("arithmetic: return a + 1 + b * 20;", "arithmetic: return a + 1 - b / 20;",
                  "arithmetic: return a - 1 - b * 20;", "constant: return a + 1 - b * 21;",
                  "constant: return a + 2 - b * 20;"));
  EXPECT_THAT(edited("  return f(20ms, 0x7f, 1.5, 1'000, u8, x2);\n"), IsEmpty());
}

TEST(MutantsTest, CommentsTextTemplatesAndLogsAreLeftAlone) {
  EXPECT_THAT(edited("#if A == 1\n// a == b\n/* a == b\n   c == d */\n"
                     "  spdlog::warn(\"{}\", a + 1);\n"
                     "  const std::map<int, Foo&&> x = f<int>(\"a == \\\" b\", ' ');\n"),
              IsEmpty());
  EXPECT_THAT(edited("  f(\"a == b\", a == b);  // a == b\n"),
              Contains("compare: f(\"a == b\", a != b);  // a == b"));
}

}  // namespace
}  // namespace faultline
