#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/run_program.h"

// The plugin inside programs in surroundings as users have them: small limits, closed descriptors,
// a container that knows fewer system calls.

namespace faultline::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SurroundingsTest : public ::testing::Test {
 protected:
  /// Two processes that talk, each begun by `before`, a text for the shell that ends in front of a
  /// program and its arguments.
  /// Each is to say at its end "code" and its exit code: what it prints goes through a pipe, as a
  /// file would have the limit too.
  std::vector<testing::Ran> talk(const std::string& before, const std::string& variables = "") {
    const testing::TemporaryFolder meeting;  // another one each time: an old handle leads nowhere
    const std::string text =
        "export FAULTLINE_NICS=lo FAULTLINE_MANAGEMENT=lo FAULTLINE_IO_THREADS=1 " + variables +
        R"(; { ( )" + before + R"( "$0" "$@" 2>&1 ); echo "code $?"; } | cat)";
    const auto one = [&](const char* side) {
      return testing::runProgram("/bin/sh",
                                 {"-c", text, FAULTLINE_NET_PEER, FAULTLINE_NET_PLUGIN, "11",
                                  meeting.path().string(), side, "--seconds", "0.2"});
    };
    auto other = std::async(std::launch::async, [&] { return one("1"); });
    std::vector<testing::Ran> both{one("0")};
    both.push_back(other.get());
    return both;
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(SurroundingsTest, FilesThatGetTooLargeEndNoProgram) {
  const std::string files = (folder_.path() / "c_%p.json").string();
  const std::string traces = (folder_.path() / "t_%p.json").string();
  for (const testing::Ran& it :
       talk("ulimit -f 1; exec", "FAULTLINE_COUNTERS=" + files + " FAULTLINE_TRACE=" + traces)) {
    EXPECT_THAT(it.out, HasSubstr("code 0")) << it.err;
    EXPECT_THAT(it.out, AllOf(HasSubstr("FAULTLINE_COUNTERS: write "), HasSubstr("File too large"),
                              HasSubstr("FAULTLINE_TRACE: write "), HasSubstr("ulimit -f")));
  }
  for (const auto& left : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_NE(left.path().extension(), ".json") << "half of a file: " << left.path();
    EXPECT_EQ(left.path().string().find(".json."), std::string::npos) << left.path();
  }
}

// Of 1 and 2 the test needs to hear; base/standard_descriptors_test.cc has all three.
TEST_F(SurroundingsTest, AClosedStandardInputGetsNoSocket) {
  for (const testing::Ran& it : talk("exec 0<&-; exec")) {
    EXPECT_THAT(it.out, HasSubstr("code 0")) << it.err;
  }
}

TEST_F(SurroundingsTest, CallsThatAFilterForbidsAreDoneWithout) {
  const std::string deny = std::string("exec ") + FAULTLINE_DENY_CALLS;
  for (const char* const error : {" EPERM ", " ENOSYS "}) {
    for (const testing::Ran& it :
         talk(deny + error +
              "recvmmsg,epoll_pwait2,close_range,fsopen,linkat,sched_setaffinity,getrandom")) {
      EXPECT_THAT(it.out, HasSubstr("code 0")) << it.err;
    }
  }
}

TEST_F(SurroundingsTest, OneThatThereIsNoWayAroundIsNamed) {
  for (const std::string call : {"eventfd2", "accept4", "poll", "epoll_create1", "clone3"}) {
    for (const testing::Ran& it :
         talk(std::string("exec ") + FAULTLINE_DENY_CALLS + " EPERM " + call)) {
      EXPECT_THAT(it.out, HasSubstr("code 1")) << it.err;
      EXPECT_THAT(it.out, AllOf(HasSubstr(call), HasSubstr("seccomp")));
    }
  }
}

}  // namespace
}  // namespace faultline::test
