#include "harness/cli/report_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/input_file.h"
#include "harness/cli/cli.h"
#include "reports/renderer.h"
#include "support/sample_result.h"
#include "tests/unit/harness_cli_report/command_fixture.h"

namespace faultline::cli {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class ReportCommandTest : public CommandTest {
 protected:
  ReportCommandTest() : CommandTest("report", addReportCommand) {}
};

TEST_F(ReportCommandTest, MakesTheReportAgain) {
  ASSERT_TRUE(reports::renderAll(testing::sampleResult(), directory_).ok());
  fs::remove(directory_ + "/report.html");
  EXPECT_EQ(run(directory_), kExitOk) << err_;
  EXPECT_TRUE(fs::exists(directory_ + "/report.html"));
  EXPECT_THAT(out_, HasSubstr("report: " + directory_ + "/report.html"));
  EXPECT_EQ(err_, "");
}

TEST_F(ReportCommandTest, PrintsJsonForScripts) {
  ASSERT_TRUE(reports::renderAll(testing::sampleResult(), directory_).ok());
  EXPECT_EQ(run(directory_ + " --json"), kExitOk);
  const reports::Json json = reports::Json::parse(out_);
  EXPECT_EQ(json["verdict"], "pass");
  for (const reports::Json& file : json["files"]) EXPECT_TRUE(fs::exists(file.get<std::string>()));
}

TEST_F(ReportCommandTest, MakesAMatrixOfAllResultsInADirectory) {
  for (const char* name : {"/a", "/b"}) {
    ASSERT_TRUE(reports::renderAll(testing::sampleResult(), directory_ + name).ok());
  }
  EXPECT_EQ(run("--matrix " + directory_ + " --out " + directory_ + "/matrix"), kExitOk) << err_;
  EXPECT_THAT(out_, HasSubstr("of 2 results"));
  EXPECT_THAT(out_, HasSubstr("port_down carrier"));
  EXPECT_TRUE(fs::exists(directory_ + "/matrix/matrix.html"));
  EXPECT_TRUE(fs::exists(directory_ + "/matrix/matrix.json"));
  EXPECT_EQ(run(directory_ + "/a " + directory_ + "/b"), kExitUsage) << "which report?";
}

TEST_F(ReportCommandTest, WhatIsOfOthersIsNeitherReplacedNorFollowed) {
  ASSERT_TRUE(reports::renderAll(testing::sampleResult(), directory_ + "/a").ok());
  const std::string out = directory_ + "/out", victim = directory_ + "/victim";
  fs::create_directory(out);
  std::ofstream(victim) << "mine";
  for (const auto& [what, file] : {std::pair{"--matrix", "summary.md"},
                                   {"--matrix", "matrix.html"},
                                   {"--matrix", "matrix.json"},
                                   {"--overview", "overview.html"}}) {
    const std::string place = out + "/" + file;
    const std::string arguments = fmt::format("{} {}/a --out {}", what, directory_, out);
    for (const char* force : {"", " --force"}) {
      std::ofstream(place) << "mine";
      EXPECT_EQ(run(arguments + force), kExitUsage) << file;
      EXPECT_THAT(err_, HasSubstr(std::string(file) + " was not made by faultline"));
      EXPECT_EQ(*readFile(place), "mine");
      fs::remove(place);
      fs::create_symlink(victim, place);
      EXPECT_EQ(run(arguments + force), kExitUsage) << file;
      EXPECT_THAT(err_, HasSubstr("is a symbolic link"));
      EXPECT_EQ(*readFile(victim), "mine");
      fs::remove(place);
    }
  }
  fs::create_directory_symlink(out, directory_ + "/link");
  EXPECT_EQ(run("--matrix " + directory_ + "/a --out " + directory_ + "/link/"), kExitUsage);
  EXPECT_FALSE(fs::exists(out + "/matrix.html"));
}

TEST_F(ReportCommandTest, ItsOwnFilesAreReplacedThoseOfEarlierVersionsWithForce) {
  ASSERT_TRUE(reports::renderAll(testing::sampleResult(), directory_ + "/a").ok());
  for (const char* what : {"--matrix ", "--overview "}) {
    const std::string out = directory_ + "/out";
    const std::string arguments = what + directory_ + "/a --out " + out;
    EXPECT_EQ(run(arguments), kExitOk) << err_;
    EXPECT_EQ(run(arguments), kExitOk) << err_;
    fs::remove(out + "/.faultline-made");  // as an earlier version would have left it
    EXPECT_EQ(run(arguments), kExitUsage);
    EXPECT_THAT(err_, HasSubstr("--force"));
    EXPECT_EQ(run(arguments + " --force"), kExitOk) << err_;
    EXPECT_EQ(run(arguments), kExitOk) << err_;
  }
}

TEST_F(ReportCommandTest, ControlCharactersOfAResultReachNoTerminal) {
  auto result = testing::sampleResult();
  result.scenario["name"] = "x\x1b]0;title\x07\x1b[8m\xc2\x9b";
  for (reports::Run& one : result.runs) {
    one.message = "\x1b[2J";
    for (reports::AppliedFault& fault : one.faults) fault.kind += "\x1b[8m";
  }
  ASSERT_TRUE(reports::renderAll(result, directory_ + "/a").ok());
  for (const char* what :
       {"", "--markdown ", "--matrix ", "--matrix --markdown ", "--table ", "--sweep "}) {
    run(what + directory_ + "/a");
    EXPECT_NE(out_, "") << what << err_;
    for (const char* bad : {"\x1b", "\x07", "\xc2\x9b"}) {
      EXPECT_EQ(out_.find(bad), std::string::npos) << what << out_;
    }
  }
}

TEST_F(ReportCommandTest, PrintsMarkdownForPullRequests) {
  for (const char* name : {"/a", "/b"}) {
    ASSERT_TRUE(reports::renderAll(testing::sampleResult(), directory_ + name).ok());
  }
  EXPECT_EQ(run(directory_ + "/a --markdown"), kExitOk) << err_;
  EXPECT_TRUE(out_.starts_with("### PASS: quickstart\n")) << out_;
  EXPECT_EQ(run("--matrix --markdown " + directory_ + " --out " + directory_ + "/many"), kExitOk);
  EXPECT_TRUE(out_.starts_with("### 2 of 2 results pass\n")) << out_;
  EXPECT_THAT(out_, HasSubstr("| `port_down carrier` | own |"));
  EXPECT_EQ(out_.find("report:"), std::string::npos) << "nothing but Markdown";
  EXPECT_TRUE(fs::exists(directory_ + "/many/summary.md"));
}

TEST_F(ReportCommandTest, AnOverviewOfAllResultsLeadsToTheirReports) {
  for (const char* name : {"/a", "/b"}) {
    ASSERT_TRUE(reports::renderAll(testing::sampleResult(), directory_ + name).ok());
  }
  fs::remove(directory_ + "/b/report.html");
  EXPECT_EQ(run("--overview " + directory_ + " --json --out " + directory_ + "/pages"), kExitOk)
      << err_;
  const reports::Json scenarios = reports::Json::parse(out_)["scenarios"];
  ASSERT_EQ(scenarios.size(), 2u);
  const std::string link = scenarios[0]["report"];
  EXPECT_EQ(link, "./../a/report.html");
  EXPECT_TRUE(fs::exists(directory_ + "/pages/" + link));
  EXPECT_EQ(scenarios[1]["report"], "") << "there is none";
  EXPECT_TRUE(fs::exists(directory_ + "/pages/overview.html"));
  EXPECT_EQ(run("--overview " + directory_), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--out"));
}

TEST_F(ReportCommandTest, ADirectoryWithoutAResultIsAMistakeOfTheUser) {
  EXPECT_EQ(run(directory_), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("result.json: No such file"));
  EXPECT_EQ(out_, "");
}

TEST_F(ReportCommandTest, ATableOfManyResults) {
  for (const char* name : {"b", "a"}) {
    auto result = testing::sampleResult();
    result.scenario["name"] = name;
    ASSERT_TRUE(reports::renderAll(result, directory_ + "/" + name).ok());
  }
  EXPECT_EQ(run(directory_ + " --table"), kExitOk) << err_;
  EXPECT_LT(out_.find("| a | hot_repair |"), out_.find("| b | hot_repair |"));
  EXPECT_EQ(run(directory_ + " --table --out " + directory_), kExitUsage);
}

}  // namespace
}  // namespace faultline::cli
