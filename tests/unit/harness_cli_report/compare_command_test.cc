#include "harness/cli/compare_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/input_file.h"
#include "harness/cli/cli.h"
#include "reports/renderer.h"
#include "support/sample_result.h"
#include "tests/unit/harness_cli_report/command_fixture.h"

namespace faultline::cli {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class CompareCommandTest : public CommandTest {
 protected:
  CompareCommandTest() : CommandTest("compare", addCompareCommand) {}

  /// The sample with twice its three blocks, everything `slower` times slower.
  void write(const std::string& name, double slower,
             const std::function<void(reports::ScenarioResult&)>& change = {}) {
    auto result = testing::sampleResult();
    const auto more = testing::sampleResult(8);
    for (reports::Run run : more.runs) {
      run.block += 3;
      result.runs.push_back(run);
    }
    for (reports::Run& run : result.runs) run.throughput->value /= slower;
    if (change) change(result);
    ASSERT_TRUE(reports::makeJsonRenderer()->render(result, folder(name)).ok());
  }
  std::string folder(const std::string& name) {
    fs::create_directories(directory_ + "/" + name);
    return directory_ + "/" + name;
  }
};

TEST_F(CompareCommandTest, WhatIsOfOthersIsNeitherReplacedNorFollowed) {
  write("base", 1);
  const std::string base = directory_ + "/base", out = folder("out"), place = out + "/compare.md";
  const std::string arguments = base + " " + base + " --out " + out;
  for (const char* force : {"", " --force"}) {
    std::ofstream(place) << "mine";
    EXPECT_EQ(run(arguments + force), kExitUsage);
    EXPECT_THAT(err_, HasSubstr("compare.md was not made by faultline"));
    EXPECT_EQ(*readFile(place), "mine");
    fs::remove(place);
    fs::create_symlink("/dev/null", place);
    EXPECT_EQ(run(arguments + force), kExitUsage);
    EXPECT_TRUE(fs::is_symlink(place));
    fs::remove(place);
  }
  EXPECT_EQ(run(arguments), kExitOk) << err_;
  EXPECT_EQ(run(arguments), kExitOk) << err_;
  fs::remove(out + "/.faultline-made");  // as an earlier version would have left it
  EXPECT_EQ(run(arguments), kExitUsage);
  EXPECT_EQ(run(arguments + " --force"), kExitOk) << err_;
}

TEST_F(CompareCommandTest, ARegressionIsExitCodeOne) {
  write("base", 1);
  write("slow", 1.2);
  const std::string base = directory_ + "/base";
  const std::string slow = directory_ + "/slow";
  EXPECT_EQ(run(base + " " + base), kExitOk) << out_;
  EXPECT_EQ(run(base + " " + slow), kExitExpectation);
  EXPECT_THAT(out_, HasSubstr("WORSE"));
  EXPECT_EQ(run(slow + " " + base), kExitOk) << "better";
  EXPECT_EQ(run("--tolerance 30 " + base + " " + slow), kExitOk) << out_;
  EXPECT_EQ(run(base + "/result.json " + slow + "/result.json"), kExitExpectation) << "files";
  EXPECT_EQ(run(base + " " + slow + " --json --out " + directory_ + "/diff"), kExitExpectation);
  EXPECT_EQ(reports::Json::parse(out_)["regressions"], 3) << "throughput of three strategies";
  EXPECT_TRUE(fs::exists(directory_ + "/diff/compare.html"));
  EXPECT_TRUE(fs::exists(directory_ + "/diff/compare.json"));
  EXPECT_TRUE(fs::exists(directory_ + "/diff/compare.md"));
  EXPECT_EQ(run(base + " " + slow + " --markdown"), kExitExpectation);
  EXPECT_TRUE(out_.starts_with("### Comparison: worse\n")) << out_;
}

TEST_F(CompareCommandTest, WhatVanishedOrFailsNowIsNoSuccess) {
  using reports::ScenarioResult;
  write("base", 1);
  write("nights/a", 1);
  write("nights/b", 1, [](ScenarioResult& result) { result.scenario["name"] = "other"; });
  write("fewer", 1, [](ScenarioResult& result) {
    std::erase_if(result.runs, [](const auto& run) { return run.strategy == "hot_repair"; });
  });
  write("fails", 1, [](ScenarioResult& result) { result.verdict = reports::Verdict::kFail; });
  write("invalid", 1, [](ScenarioResult& result) { result.verdict = reports::Verdict::kInvalid; });
  const auto both = [&](const std::string& base, const std::string& now) {
    return directory_ + "/" + base + " " + directory_ + "/" + now;
  };
  EXPECT_EQ(run(both("base", "fewer")), kExitExpectation);
  EXPECT_THAT(out_, HasSubstr("1 vanished (quickstart: hot_repair)"));
  EXPECT_EQ(run("--allow-missing " + both("base", "fewer")), kExitOk) << out_;
  EXPECT_EQ(run(both("fewer", "base")), kExitOk) << "more than before";
  EXPECT_EQ(run(both("nights", "nights/a")), kExitExpectation);
  EXPECT_THAT(out_, HasSubstr("1 vanished (other)"));
  EXPECT_EQ(run(both("nights/a", "nights")), kExitOk) << out_;
  EXPECT_EQ(run(both("base", "fails") + " --json"), kExitExpectation);
  EXPECT_EQ(reports::Json::parse(out_)["fails_now"], reports::Json::array({"quickstart"}));
  EXPECT_EQ(run(both("fails", "fails")), kExitOk) << "as before";
  EXPECT_EQ(run(both("base", "invalid")), kExitInvalid);
  EXPECT_THAT(out_, HasSubstr("1 passed and is invalid now (quickstart)"));
}

TEST_F(CompareCommandTest, NothingComparedIsNoSuccess) {
  ASSERT_TRUE(reports::renderAll(testing::sampleResult(), folder("few")).ok());
  EXPECT_EQ(run(directory_ + "/few " + directory_ + "/few"), kExitInvalid);
  EXPECT_THAT(out_, HasSubstr("too few values"));
}

TEST_F(CompareCommandTest, AFolderWithoutResultsIsAMistakeOfTheUser) {
  write("base", 1);
  EXPECT_EQ(run(directory_ + "/base " + directory_ + "/nothing"), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("/nothing/result.json"));
  EXPECT_EQ(out_, "");
}

}  // namespace
}  // namespace faultline::cli
