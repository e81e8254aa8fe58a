#include "harness/control/told_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "harness/control/program_plan.h"
#include "harness/control/progress_files.h"
#include "tests/support/run_program.h"

// What programs leave behind may be anything: nothing of it is waited for or read without end.
namespace faultline::run {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ToldNumbersTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() / name; }
  std::string why(const command::Metric& metric) const {
    const auto told = toldNumbers({metric}, {folder_.path().string()});
    return told.ok() ? "it was told" : told.status().message();
  }
  static command::Metric fromJson() {
    command::Metric metric;
    metric.name = "speed";
    metric.json = "speed.json";
    metric.path = "speed";
    return metric;
  }
  static command::Metric fromText() {
    command::Metric metric;
    metric.name = "speed";
    metric.regex = "speed ([0-9]+)";
    return metric;
  }
  const command::Metric json_ = fromJson();
  const command::Metric regex_ = fromText();
  testing::TemporaryFolder folder_;
};

TEST_F(ToldNumbersTest, NumbersAreTold) {
  folder_.write("speed.json", R"({"speed": 3})");
  folder_.write(kStdoutFile, "speed 1\nspeed 2\n");
  EXPECT_EQ(toldNumbers({json_}, {folder_.path().string()})->at("speed").value, 3);
  EXPECT_EQ(toldNumbers({regex_}, {folder_.path().string()})->at("speed").value, 2);
}

TEST_F(ToldNumbersTest, APipeInPlaceOfAFileIsNamedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path("speed.json").c_str(), 0600), 0);
  EXPECT_THAT(why(json_),
              AllOf(HasSubstr("metric speed"), HasSubstr("speed.json"), HasSubstr("it is a pipe")));
  ASSERT_EQ(::mkfifo(path(kStdoutFile).c_str(), 0600), 0);
  EXPECT_THAT(why(regex_), HasSubstr("it is a pipe"));
  EXPECT_EQ(lastLines(path(kStdoutFile)), "");
  std::string buffer;
  EXPECT_EQ(readStep(path(kStdoutFile), 0, buffer), std::nullopt);
}

TEST_F(ToldNumbersTest, AnEndlessDeviceIsNamed) {
  std::filesystem::create_symlink("/dev/zero", path("speed.json"));
  EXPECT_THAT(why(json_), HasSubstr("it is a device"));
  std::filesystem::create_symlink("/dev/zero", path(kStderrFile));
  EXPECT_THAT(why(regex_), HasSubstr("it is a device"));
  EXPECT_EQ(lastLines(path(kStderrFile)), "");
  std::string buffer;
  EXPECT_EQ(readStep(path(kStderrFile), 0, buffer), std::nullopt);
}

TEST_F(ToldNumbersTest, DeepJsonIsAMistake) {
  folder_.write("speed.json", std::string(200'000, '['));
  EXPECT_THAT(why(json_), HasSubstr("nested deeper"));
}

TEST_F(ToldNumbersTest, TheLastLinesAreWhole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "line " + std::to_string(i) + "\n";
  const std::string last = lastLines(folder_.write(kStdoutFile, text));
  EXPECT_THAT(last, ::testing::StartsWith("line "));
  EXPECT_THAT(last, ::testing::EndsWith("line 999"));
  EXPECT_EQ(lastLines(folder_.write(kStderrFile, "short\n")), "short");
}

}  // namespace
}  // namespace faultline::run
