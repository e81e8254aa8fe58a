#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::HasSubstr;
using testing::Ran;
using testing::runProgram;
using testing::TemporaryFolder;

const std::string kCheckout = FAULTLINE_SOURCE_DIR;

class DataPage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (runProgram("/usr/bin/env", {"python3", "--version"}).exit != 0) {
      GTEST_SKIP() << "there is no python3";
    }
  }

  static Ran page(const std::string& file, const std::string& option = "") {
    std::vector<std::string> arguments{"python3", "-B", kCheckout + "/ci/gpu/page.py", file};
    if (!option.empty()) arguments.push_back(option);
    return runProgram("/usr/bin/env", arguments);
  }

  static std::string textOf(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(DataPage, TheGpuPageShowsItsDataFiles) {
  const Ran ran = page(kCheckout + "/docs/gpu.md", "--check");
  EXPECT_EQ(ran.exit, 0) << ran.err;
}

TEST_F(DataPage, AChangedNumberIsNoticedAndFilledIn) {
  const TemporaryFolder folder;
  folder.write(
      "table.json",
      R"({"title": "T", "commit": "abc", "machine": "M", "command": "C", "head": ["a", "b"],
                   "rows": [["1", "2"]], "verdicts": ["met: it"]})");
  const std::string file = folder.write(
      "page.md", "before\n<!-- table: table.json -->\nold\n<!-- end of table -->\nafter\n");
  EXPECT_EQ(page(file, "--check").exit, 1);
  EXPECT_EQ(page(file).exit, 0);
  EXPECT_EQ(textOf(file),
            "before\n<!-- table: table.json -->\n**T**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
            "- met: it\n\n*M; commit abc; `C`.*\n<!-- end of table -->\nafter\n");
  EXPECT_EQ(page(file, "--check").exit, 0);
}

TEST_F(DataPage, WithoutAPageItSaysWhatItWants) {
  const Ran ran = page("/no/such/page.md");
  EXPECT_EQ(ran.exit, 2);
  EXPECT_THAT(ran.err, HasSubstr("page.py PAGE"));
}

}  // namespace
}  // namespace faultline
