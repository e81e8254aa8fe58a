#include "base/file_text.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace faultline {
namespace {

TEST(FileTextTest, IsAllOfAFile) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("faultline-text-" + std::to_string(getpid()));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100'000}}) {
    std::string text(size, 'x');
    if (size > 1) text[size / 2] = '\0';
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(fileText(path), text);
  }
  std::filesystem::remove(path);
  EXPECT_EQ(fileText(path), "");
}

TEST(FileTextTest, OfWhatCannotBeReadIsEmpty) {
  EXPECT_EQ(fileText("/"), "");  // EISDIR
  EXPECT_EQ(fileText(""), "");
}

// Scanning /proc meets processes that end.
TEST(FileTextTest, OfAProcessThatEndsMeanwhileIsEmptyOrWhole) {
  constexpr int kProcesses = 200;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(0);
    const std::string stat = "/proc/" + std::to_string(child) + "/stat";
    for (bool reaped = false; !reaped;) {
      EXPECT_NO_THROW((void)fileText(stat));
      reaped = waitpid(child, nullptr, WNOHANG) == child;
    }
    EXPECT_EQ(fileText(stat), "");
  }
}

}  // namespace
}  // namespace faultline
