#include "harness/run/output_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

#include "reports/result_json.h"
#include "tests/support/run_program.h"

namespace faultline::run {
namespace {

using ::testing::HasSubstr;

class OutputFolderTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path(); }
  testing::TemporaryFolder folder_;
};

TEST_F(OutputFolderTest, ItIsOfOneExperimentAtATime) {
  {
    const auto first = OutputFolder::claim(path());
    ASSERT_TRUE(first.ok()) << first.status().message();
    ASSERT_TRUE(reports::writeResult({}, path()).ok());
    const auto second = OutputFolder::claim(path());
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.status().code(), Code::kAlreadyExists);
    EXPECT_THAT(second.status().message(), HasSubstr("--out"));
    EXPECT_TRUE(std::filesystem::exists(path() + "/result.json")) << "it is the first one's";
  }
  EXPECT_TRUE(OutputFolder::claim(path()).ok());
}

TEST_F(OutputFolderTest, AnExperimentThatIsJustEndingIsWaitedFor) {
  auto first = OutputFolder::claim(path());
  ASSERT_TRUE(first.ok()) << first.status().message();
  std::thread ending([&] {
    ::poll(nullptr, 0, 100);
    [[maybe_unused]] const OutputFolder gone = std::move(*first);
  });
  const auto second = OutputFolder::claim(path());
  ending.join();
  EXPECT_TRUE(second.ok()) << second.status().message();
}

TEST_F(OutputFolderTest, NothingOfAnEarlierExperimentIsLeft) {
  ASSERT_TRUE(reports::writeResult({}, path()).ok());
  for (const char* name : {"report.html", "results.csv", "trace.json", "log.txt", "notes.md"}) {
    folder_.write(name, "old");
  }
  const auto folder = OutputFolder::claim(path());
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  for (const char* name : {"result.json", "report.html", "results.csv", "trace.json"}) {
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / name)) << name;
  }
  EXPECT_EQ(std::filesystem::file_size(folder->logPath()), 0u);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "notes.md")) << "somebody else's";
}

TEST_F(OutputFolderTest, AFolderThatCannotBeWrittenIsAnError) {
  const auto folder = OutputFolder::claim(path() + "/missing");
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.status().message(), HasSubstr("log.txt"));
}

}  // namespace
}  // namespace faultline::run
