#include "reports/renderer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/input_file.h"
#include "reports/result_json.h"
#include "reports/text.h"
#include "support/sample_result.h"
#include "support/trace_rules.h"

namespace faultline::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

/// A directory that is gone afterwards.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = (fs::temp_directory_path() / "faultline-reports-XXXXXX").string();
    path_ = ::mkdtemp(path.data());
  }
  ~TemporaryDirectory() { fs::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string path() const { return path_; }

 private:
  std::string path_;
};

std::size_t filesIn(const std::string& directory) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST(RendererTest, AllFilesAreWrittenAndCanBeMadeAgain) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path() + "/a/b";
  ScenarioResult result = testing::sampleResult();
  result.runs.front().collectives.emplace_back();  // so that every file has something in it
  ASSERT_TRUE(renderAll(result, directory).ok());
  std::map<std::string, std::string> first;
  for (const auto& renderer : allRenderers()) {
    const std::string path = directory + "/" + renderer->fileName();
    first[path] = *readFile(path);
    EXPECT_FALSE(first[path].empty()) << path;
    if (path.find("result.json") == std::string::npos) fs::remove(path);
  }
  EXPECT_EQ(first.size(), allRenderers().size());
  ASSERT_TRUE(renderDirectory(directory).ok());
  for (const auto& [path, text] : first) EXPECT_EQ(*readFile(path), text) << path;
  EXPECT_EQ(filesIn(directory), first.size() + 1) << "and the record; a temporary file was left";
}

TEST(RendererTest, MadeAgainIsOnlyWhatIsOfTheResult) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path();
  ASSERT_TRUE(renderAll(testing::sampleResult(), directory).ok());
  ASSERT_TRUE(renderDirectory(directory).ok());  // older than records: taken by name
  ASSERT_TRUE(renderDirectory(directory).ok());
  const std::string collectives = directory + "/collectives.txt";
  ASSERT_TRUE(writeFileAtomically(collectives, "mine").ok());
  ScenarioResult result = testing::sampleResult();
  result.runs.front().collectives.emplace_back();
  ASSERT_TRUE(writeResult(result, directory).ok());
  const Status status = renderDirectory(directory);
  EXPECT_EQ(status.code(), Code::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr("collectives.txt was not made by faultline"));
  EXPECT_EQ(*readFile(collectives), "mine");
}

TEST(RendererTest, AResultThatIsNamedByALinkIsMadeAgainWhereItIs) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path() + "/real", link = temporary.path() + "/latest";
  ASSERT_TRUE(renderAll(testing::sampleResult(), directory).ok());
  fs::create_directory_symlink(directory, link);
  fs::remove(directory + "/report.html");
  const Status status = renderDirectory(link);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(fs::exists(directory + "/report.html"));
}

TEST(RendererTest, ADirectoryWithoutAResultIsNamed) {
  const TemporaryDirectory temporary;
  const Status status = renderDirectory(temporary.path());
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(temporary.path() + "/result.json"));
  ASSERT_TRUE(writeFileAtomically(temporary.path() + "/result.json", "{}").ok());
  EXPECT_THAT(renderDirectory(temporary.path()).message(),
              HasSubstr("/result.json: schema: is missing"));
}

// --- text

TEST(CleanTextTest, CommandsOfTerminalsAndMarksOfDirectionAreReplaced) {
  EXPECT_EQ(cleanText("a\033[1m\xc2\x9b\u202e\u2066\x7f\x9b"
                      "b"),
            "a\ufffd[1m\ufffd\ufffd\ufffd\ufffd\ufffd"
            "b");
  EXPECT_EQ(cleanText("a\tb\r\n\u00e9\u4e2d"), "a\tb\r\n\u00e9\u4e2d");
  EXPECT_EQ(cleanText("\xef\xbf\xbe\xef\xbf\xbf"), "\ufffd\ufffd") << "XML has neither";
}

// --- report.html

std::string dataOf(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = html.find(open) + open.size();
  return html.substr(begin, html.find("</script>", begin) - begin);
}

TEST(HtmlTest, EmbedsTheDataAndEverythingItNeeds) {
  const std::string html = makeHtmlRenderer()->text(testing::sampleResult());
  EXPECT_THAT(html, HasSubstr("<title>quickstart · pass · Faultline</title>"));
  EXPECT_THAT(html, HasSubstr("Chart.js v4"));
  EXPECT_THAT(html, HasSubstr("const charts ="));
  EXPECT_THAT(html, Not(HasSubstr("{{")));
  EXPECT_THAT(html, Not(HasSubstr("<link rel=\"stylesheet")));
  EXPECT_LT(html.size(), 1'000'000u);
  const Json data = Json::parse(dataOf(html));
  EXPECT_EQ(data["verdict_text"], "All 4 expectations hold");
  EXPECT_EQ(data["runs"].size(), 9u);
}

TEST(HtmlTest, TextOfTheResultCannotLeaveItsPlace) {
  const std::string html = makeHtmlRenderer()->text(testing::hostileResult());
  const std::string data = dataOf(html);
  EXPECT_EQ(data.find_first_of("<>&"), std::string::npos);
  const Json json = Json::parse(data);
  EXPECT_THAT(json["name"].get<std::string>(), HasSubstr("</script>"));
  EXPECT_THAT(html, Not(HasSubstr("<script>window.hacked")));
  EXPECT_THAT(html, Not(HasSubstr("<img src=x")));
}

TEST(HtmlTest, StaysBelowOneMegabyte) {
  const std::string html = makeHtmlRenderer()->text(testing::hugeResult(12, 30));
  EXPECT_LT(html.size(), 1'000'000u);
  const Json data = Json::parse(dataOf(html));
  EXPECT_FALSE(data["notes"].empty()) << "thinning is not said";
  EXPECT_EQ(data["runs"].size(), 36u);
}

TEST(HtmlTest, ALargeSweepStaysBelowOneMegabyteWithAllItsCalls) {
  const std::string html = makeHtmlRenderer()->text(testing::hugeSweepResult(10));
  EXPECT_LT(html.size(), 1'000'000u);
  EXPECT_EQ(Json::parse(dataOf(html))["calls"].size(), 7u * 25);
}

TEST(HtmlTest, HalfAnHourOfFaultsStaysBelowOneMegabyte) {
  ScenarioResult result = testing::sampleResult();
  reports::Run& run = result.runs.back();
  const AppliedFault fault = result.runs[1].faults.at(0);
  for (int strike = 0; strike < 4500; ++strike) {
    run.faults.push_back(fault);
    run.evidence.push_back(
        {static_cast<int>(run.faults.size()) - 1, "counters", std::string(200, 'x'), true});
  }
  const std::string html = makeHtmlRenderer()->text(result);
  EXPECT_LT(html.size(), 1'000'000u);
  const Json view = Json::parse(dataOf(html))["runs"].back();
  EXPECT_LT(view["faults"].size(), 500u);
  EXPECT_FALSE(view["faults"].empty());
  for (const Json& evidence : view["evidence"]) {
    EXPECT_LT(evidence["fault"], view["faults"].size());
  }
}

TEST(HtmlTest, AnEmptyResultHasAPage) {
  EXPECT_THAT(makeHtmlRenderer()->text({}),
              HasSubstr("<title>unnamed · error · Faultline</title>"));
}

}  // namespace
}  // namespace faultline::reports
