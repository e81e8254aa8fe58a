#include "base/input_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class InputFileTest : public ::testing::Test {
 protected:
  std::string path(const char* name) const { return folder_.path() / name; }
  static std::string why(const std::string& file, const Input& input = {}) {
    const auto text = readInput(file, input);
    return text.ok() ? "it was read" : text.status().message();
  }
  testing::TemporaryFolder folder_;
};

TEST_F(InputFileTest, AFileIsReadWhole) {
  const std::string text(200'000, 'x');
  folder_.write("file", text);
  fs::create_symlink("file", path("link"));
  EXPECT_EQ(*readInput(path("file"), {}), text);
  EXPECT_EQ(*readInput(path("link"), {}), text);
  EXPECT_FALSE(readInput("/proc/self/status", {})->empty()) << "its size is told to be 0";
}

TEST_F(InputFileTest, APipeWithoutAWriterIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", path("link"));
  for (const char* name : {"pipe", "link"}) {
    EXPECT_THAT(why(path(name)), AllOf(HasSubstr(path(name)), HasSubstr("a pipe"),
                                       HasSubstr("give a regular file")));
    EXPECT_EQ(openInput(path(name)).status().code(), Code::kInvalidArgument);
    EXPECT_THAT(why(path(name), {.ownPipes = true}), HasSubstr("a pipe"))
        << "it is none that this process has open";
  }
}

TEST_F(InputFileTest, WhatIsNoFileIsNamed) {
  EXPECT_THAT(why("/dev/zero"), HasSubstr("a device"));
  EXPECT_THAT(why("/dev/tty"), HasSubstr("a device"));
  EXPECT_THAT(why(folder_.path()), HasSubstr("a folder"));
  EXPECT_THAT(why(path("missing")), HasSubstr("No such file"));
  fs::create_symlink("loop", path("loop"));
  EXPECT_THAT(why(path("loop")), HasSubstr("symbolic links"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path("s").size(), sizeof address.sun_path);
  std::strcpy(address.sun_path, path("s").c_str());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(why(path("s")), HasSubstr("a socket"));
}

TEST_F(InputFileTest, ReadingEndsAtTheBound) {
  folder_.write("file", std::string(1001, 'x'));
  const Input thousand{.what = "request trace", .mostBytes = 1000};
  EXPECT_THAT(why(path("file"), thousand),
              HasSubstr("more than 1000 bytes, the most that a request trace may have"));
  folder_.write("file", std::string(1000, 'x'));
  EXPECT_EQ(readInput(path("file"), thousand)->size(), 1000u);
  // The kernel calls it a regular file, and it goes on for the whole address space.
  constexpr std::size_t kWholeEntries = 1008;
  EXPECT_THAT(why("/proc/self/pagemap", {.mostBytes = kWholeEntries - 1}),
              HasSubstr("more than 1007 bytes"));
}

TEST_F(InputFileTest, AnOwnPipeIsReadToItsEndAndToTheBound) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd reader(ends[0]);
  const std::string name = fmt::format("/dev/fd/{}", reader.get());
  std::thread writer([fd = ends[1]] {
    const UniqueFd end(fd);
    (void)!::write(end.get(), "one ", 4);
    (void)!::write(end.get(), "two", 3);
  });
  const auto text = readInput(name, {.ownPipes = true});
  writer.join();
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "one two");

  const UniqueFd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(why(fmt::format("/dev/fd/{}", zero.get()), {.ownPipes = true}),
              HasSubstr("a device"));
  EXPECT_THAT(why("/dev/fd/12345", {.ownPipes = true}), HasSubstr("Bad file descriptor"));
}

}  // namespace
}  // namespace faultline
