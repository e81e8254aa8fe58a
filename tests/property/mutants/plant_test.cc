#include "tests/planted/plant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// How bugs get into copies of the sources, and what is said when a source has changed.

namespace faultline::test {
namespace {

using ::testing::HasSubstr;

constexpr char kFile[] = "room/door.cc";

/// One bug, "Open", at one place of kFile.
Result<PlantedBugs> bugAt(const std::string& right, const std::string& wrong) {
  return parsePlantedBugs("bug Open\nin room/door.cc\nright " + right + "\nwrong " + wrong + "\n");
}

std::string planted(const std::string& source, const Result<PlantedBugs>& bugs) {
  if (!bugs.ok()) return bugs.status().message();
  Result<std::string> copy = plantInto(source, kFile, *bugs);
  if (!copy.ok()) return copy.status().message();
  return copy->substr(copy->find("#line"));
}

TEST(PlantTest, AnExpressionIsChosenAndLinesKeepTheirNumbers) {
  EXPECT_EQ(planted("a\nif (x <\n    y) shut();\n", bugAt("if (`x < y`) shut", "false")),
            "#line 1 \"room/door.cc\"\na\nif ((::faultline::planted::is(::faultline::planted::Bug::"
            "kOpen) ? (false) : (x <\n    y))) shut();\n");
}

TEST(PlantTest, AStatementIsReplacedLeftOutOrPutIn) {
  const std::string is = "if (::faultline::planted::is(::faultline::planted::Bug::kOpen)) ";
  EXPECT_THAT(planted("shut();", bugAt("`shut();`", "open();")),
              HasSubstr("{ " + is + "{ open(); } else { shut(); } }"));
  EXPECT_THAT(planted("shut();", bugAt("`shut();`", "")),
              HasSubstr("{ " + is + "{  } else { shut(); } }"));
  EXPECT_THAT(planted("shut(); // why", bugAt("shut(); ``", "open();")),
              HasSubstr("shut();{ " + is + "{ open(); } else {  } } // why"));
}

TEST(PlantTest, TwoBugsMayReplaceTheSameText) {
  const auto bugs = parsePlantedBugs(
      "bug A\nin room/door.cc\nright f(`x`)\nwrong 1\n"
      "bug B\nin room/door.cc\nright `x`)\nwrong 2\n");
  EXPECT_THAT(planted("f(x);", bugs), HasSubstr("kA) ? (1) : "));
  EXPECT_THAT(planted("f(x);", bugs), HasSubstr("kB) ? (2) : (x))"));
}

TEST(PlantTest, APlaceThatIsGoneIsNamedWithItsBug) {
  const std::string said = planted("shut_the_door();", bugAt("`shut();`", ""));
  EXPECT_THAT(said,
              HasSubstr("bug Open: room/door.cc: this text is not there any more: `shut();`"));
  EXPECT_THAT(said, HasSubstr("tests/planted/bugs.txt"));
}

TEST(PlantTest, APlaceThatIsThereTwiceIsNoPlace) {
  EXPECT_THAT(planted("shut(); shut();", bugAt("`shut();`", "")),
              HasSubstr("bug Open: room/door.cc: this text is there twice"));
}

TEST(PlantTest, PlacesMustNotOverlap) {
  const auto bugs = parsePlantedBugs(
      "bug A\nin room/door.cc\nright `x + y`\nwrong 1\n"
      "bug B\nin room/door.cc\nright `y`)\nwrong 2\n");
  EXPECT_THAT(planted("f(x + y);", bugs), HasSubstr("bug B: room/door.cc: overlaps what bug A"));
}

TEST(PlantTest, MistakesInTheListAreNamedWithTheirLine) {
  const auto said = [](const char* text) {
    const auto bugs = parsePlantedBugs(text);
    return bugs.ok() ? std::string() : bugs.status().message();
  };
  EXPECT_THAT(said("# only a comment\nin a.cc\n"), HasSubstr("line 2: 'in' where 'bug'"));
  EXPECT_THAT(said("bug A\n\nbug B\n"), HasSubstr("line 3: 'bug' where 'in'"));
  EXPECT_THAT(said("bug A\nin a.cc\nright `x`\nwrong y\nbug A\n"), HasSubstr("line 5"));
  EXPECT_THAT(said("bug A\nin a.cc\nright x\n"), HasSubstr("line 3: backticks"));
  EXPECT_THAT(said("bug A\nin a.cc\nright `x;`\nwrong y\n"), HasSubstr("line 4: a statement"));
  EXPECT_THAT(said("bug A\nin a.cc\nright `x`\n"), HasSubstr("'wrong' is missing"));
}

TEST(PlantTest, TheHeaderNamesEachBugOnce) {
  const auto bugs =
      parsePlantedBugs("bug A\nin a.cc\nright `x`\nwrong 1\nin b.cc\nright `y`\nwrong 1\n");
  ASSERT_TRUE(bugs.ok()) << bugs.status().message();
  EXPECT_EQ(bugs->names.size(), 1u);
  EXPECT_EQ(bugs->places.size(), 2u);
  const std::string header = plantedHeader(*bugs);
  EXPECT_THAT(header, HasSubstr("  kA,\n"));
  EXPECT_THAT(header, HasSubstr("{Bug::kA, \"A\"}"));
  EXPECT_EQ(header.find("kA,"), header.rfind("kA,\n")) << header;
}

}  // namespace
}  // namespace faultline::test
