#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/run_program.h"

// ci/check_arrows.py, on this checkout and on a small one with mistakes.

namespace faultline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Ran;
using testing::runProgram;
using testing::TemporaryFolder;

const std::string kScript = std::string(FAULTLINE_SOURCE_DIR) + "/ci/check_arrows.py";

TEST(ArrowsTest, TheSourcesFollowTheTableOfTheDesign) {
  const Ran ran = runProgram("/usr/bin/env", {"python3", kScript});
  EXPECT_EQ(ran.exit, 0) << ran.out;
}

/// Two rooms: analysis may include record.
class SmallCheckoutTest : public ::testing::Test {
 protected:
  SmallCheckoutTest() {
    for (const char* folder : {"ci", "docs", "base", "harness/record", "harness/analysis"}) {
      fs::create_directories(folder_.path() / folder);
    }
    fs::copy_file(kScript, folder_.path() / "ci/check_arrows.py");
    table("| `harness/analysis` | `harness/record` |\n| `harness/record` | - |\n");
    folder_.write("base/a.h", "#pragma once\n");
    folder_.write("harness/record/r.h", "#include \"base/a.h\"\n");
    folder_.write("harness/analysis/a.cc", "#include \"harness/record/r.h\"\n");
  }

  void table(const std::string& rows) {
    folder_.write("docs/design.md", "## Rooms and arrows\n\n| room | may include |\n|---|---|\n" +
                                        rows + "\n## More\n");
  }
  Ran check() const {
    return runProgram("/usr/bin/env",
                      {"python3", (folder_.path() / "ci/check_arrows.py").string()});
  }

  TemporaryFolder folder_;
};

TEST_F(SmallCheckoutTest, WhatTheTableAllowsIsRight) {
  const Ran ran = check();
  EXPECT_EQ(ran.exit, 0) << ran.out;
}

TEST_F(SmallCheckoutTest, AnIncludeAgainstTheArrowIsNamedWithItsLine) {
  folder_.write("harness/record/r.h", "#pragma once\n#include \"harness/analysis/b.h\"\n");
  const Ran ran = check();
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.out, HasSubstr("harness/record/r.h:2: harness/record may not include "
                                 "harness/analysis/b.h"));
}

TEST_F(SmallCheckoutTest, NoIncludeGoesAroundTheTable) {
  folder_.write("harness/record/r.h",
                "#include \"../analysis/b.h\"\n#include <harness/analysis/b.h>\n");
  const Ran ran = check();
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.out, HasSubstr("harness/record/r.h:1: ../analysis/b.h: write it from the root"));
  EXPECT_THAT(ran.out, HasSubstr("harness/record/r.h:2: harness/record may not include"));
}

TEST_F(SmallCheckoutTest, ARowWithoutAFolderIsNamed) {
  table(
      "| `harness/analysis` | `harness/record` |\n| `harness/gone` | - |\n| `harness/record` | - "
      "|\n");
  const Ran ran = check();
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.out, HasSubstr("there is no harness/gone"));
}

TEST_F(SmallCheckoutTest, AnArrowThatNobodyUsesIsNamed) {
  folder_.write("harness/analysis/a.cc", "\n");
  const Ran ran = check();
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.out, HasSubstr("nothing in harness/analysis includes harness/record"));
}

TEST_F(SmallCheckoutTest, ACircleIsNamed) {
  folder_.write("harness/record/r.h", "#include \"harness/analysis/b.h\"\n");
  table("| `harness/analysis` | `harness/record` |\n| `harness/record` | `harness/analysis` |\n");
  const Ran ran = check();
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.out,
              HasSubstr("a circle: harness/analysis -> harness/record -> harness/analysis"));
}

/// Two sites by one row, and their list.
class PatternTest : public SmallCheckoutTest {
 protected:
  PatternTest() {
    for (const char* folder : {"here/parts", "there/parts", "kinds"}) {
      fs::create_directories(folder_.path() / "harness/site" / folder);
    }
    table(kRows);
    for (const std::string name : {"here", "there"}) {
      folder_.write("harness/site/" + name + "/parts/p.h", "#pragma once\n");
      folder_.write("harness/site/" + name + "/kind.h", "#include \"harness/record/r.h\"\n");
    }
    folder_.write("harness/site/here/kind.cc", "#include \"harness/site/here/parts/p.h\"\n");
    folder_.write(
        "harness/site/kinds/kinds.cc",
        "#include \"harness/site/here/kind.h\"\n#include \"harness/site/there/kind.h\"\n");
  }

  const std::string kRows =
      "| `harness/analysis` | `harness/record` |\n| `harness/record` | - |\n"
      "| `harness/site/*` | `harness/record`, `harness/site/*/parts` |\n"
      "| `harness/site/*/parts` | - |\n| `harness/site/kinds` | `harness/site/*` |\n";
};

TEST_F(PatternTest, OneRowIsForAllFoldersThatHaveNoneOfTheirOwn) {
  EXPECT_EQ(check().out, "");
  fs::create_directories(folder_.path() / "harness/site/new");
  folder_.write("harness/site/new/kind.h", "#include \"harness/record/r.h\"\n");
  EXPECT_EQ(check().out, "") << "a new one needs no row";
  folder_.write("harness/site/new/kind.h", "#include \"harness/analysis/a.h\"\n");
  EXPECT_THAT(check().out, HasSubstr("harness/site/new/kind.h:1: harness/site/new may not include "
                                     "harness/analysis/a.h"));
  folder_.write("harness/site/new/kind.h", "");
  folder_.write("harness/site/kinds/list.h", "#include \"harness/record/r.h\"\n");
  EXPECT_THAT(check().out, HasSubstr("harness/site/kinds may not include harness/record/r.h"))
      << "which has a row of its own";
}

TEST_F(PatternTest, ItsArrowLeadsToTheFolderOfTheSameNameAndToNoOther) {
  folder_.write("harness/site/there/kind.cc", "#include \"harness/site/here/parts/p.h\"\n");
  EXPECT_THAT(check().out, HasSubstr("harness/site/there/kind.cc:1: harness/site/there may not "
                                     "include harness/site/here/parts/p.h"));
  folder_.write("harness/site/there/kind.cc", "#include \"harness/site/here/kind.h\"\n");
  EXPECT_THAT(check().out,
              HasSubstr("harness/site/there may not include harness/site/here/kind.h"));
}

TEST_F(PatternTest, AnArrowOfItThatNoFolderUsesAndARowWithoutFoldersAreNamed) {
  folder_.write("harness/site/here/kind.cc", "");
  EXPECT_THAT(check().out, HasSubstr("nothing in harness/site/* includes harness/site/*/parts"));
  table(kRows + "| `harness/gone/*` | - |\n");
  EXPECT_THAT(check().out, HasSubstr("there is no harness/gone/*"));
}

/// A third site, and a room that only one of them may include.
class OwnRowTest : public PatternTest {
 protected:
  OwnRowTest() {
    table(kRows + kOwn);
    folder_.write("harness/analysis/b.h", "#pragma once\n");
    folder_.write("harness/site/here/own.cc", "#include \"harness/analysis/b.h\"\n");
  }
  const std::string kOwn =
      "| `harness/site/here`, besides `harness/site/*` | `harness/analysis` |\n";
};

TEST_F(OwnRowTest, WhatOnlyOneMayIncludeIsRefusedToItsSiblings) {
  EXPECT_EQ(check().out, "");
  folder_.write("harness/site/there/own.cc", "#include \"harness/analysis/b.h\"\n");
  EXPECT_THAT(check().out,
              HasSubstr("harness/site/there/own.cc:1: harness/site/there may not include "
                        "harness/analysis/b.h"));
}

TEST_F(OwnRowTest, WhatOnlyOneIncludesMayNotStandInTheCommonRow) {
  table(
      "| `harness/analysis` | `harness/record` |\n| `harness/record` | - |\n"
      "| `harness/site/*` | `harness/analysis`, `harness/record`, `harness/site/*/parts` |\n"
      "| `harness/site/*/parts` | - |\n| `harness/site/kinds` | `harness/site/*` |\n");
  EXPECT_THAT(check().out, HasSubstr("of harness/site/* only harness/site/here includes "
                                     "harness/analysis: write \"`harness/site/here`, besides "
                                     "`harness/site/*`\""));
}

TEST_F(OwnRowTest, AnArrowTwiceARowOfNobodysAndOneThatIsNoneOfThemAreNamed) {
  table(kRows +
        "| `harness/site/here`, besides `harness/site/*` | `harness/analysis`, "
        "`harness/record` |\n");
  EXPECT_THAT(check().out, HasSubstr("nothing in harness/site/here includes harness/record"));
  table(kRows + kOwn + "| `base`, besides `harness/site/*` | - |\n");
  EXPECT_THAT(check().out, HasSubstr("base is none of harness/site/*"));
  table(kRows + "| `harness/site/here`, besides `harness/gone/*` | `harness/analysis` |\n");
  EXPECT_THAT(check().out, HasSubstr("harness/site/here is none of harness/gone/*"));
}

TEST_F(SmallCheckoutTest, ARoomThatTheTableDoesNotKnowIsNamed) {
  fs::create_directories(folder_.path() / "harness/new_room");
  folder_.write("harness/new_room/n.h", "\n");
  const Ran ran = check();
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.out, HasSubstr("knows no room harness/new_room"));
}

}  // namespace
}  // namespace faultline
