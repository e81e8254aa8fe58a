#include "base/file_text.h"

#include <gtest/gtest.h>
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

}  // namespace
}  // namespace faultline
