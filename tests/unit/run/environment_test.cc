#include "harness/run/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include "base/version.h"

namespace faultline::run {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(EnvironmentTest, SaysWhatThisMachineAndProgramAre) {
  const reports::Environment environment = describeEnvironment({});
  utsname kernel{};
  ASSERT_EQ(::uname(&kernel), 0);
  EXPECT_THAT(environment.kernel, HasSubstr(kernel.release));
  EXPECT_FALSE(environment.cpu.empty());
  EXPECT_GE(environment.cores, 1);
  EXPECT_EQ(environment.git, gitCommit());
  EXPECT_EQ(environment.gpu, std::nullopt);
  EXPECT_EQ(environment.nccl, std::nullopt);
  EXPECT_EQ(environment.versions.at("faultline"), versionNumber());
  for (const char* name :
       {"libnl", "yaml-cpp", "fmt", "spdlog", "nlohmann-json", "CLI11", "OpenSSL"}) {
    EXPECT_THAT(environment.versions.at(name), MatchesRegex("[0-9]+\\.[0-9]+.*")) << name;
  }
  EXPECT_THAT(environment.versions.at("compiler"), MatchesRegex("[A-Za-z]+ [0-9]+\\..*"));
  EXPECT_THAT(environment.libraries, Contains(HasSubstr("libc.so")));
}

TEST(EnvironmentTest, TheClusterSaysHowItsRailsAreShaped) {
  const reports::Environment environment =
      describeEnvironment({{"qdisc", "htb"},
                           {"rail_rate", "400Mbit"},
                           {"kernel", "not repeated"},
                           {"tcp_rmem", "1 2 3"},
                           {"tcp_congestion_control", "its own"}});
  EXPECT_EQ(environment.qdisc,
            (std::map<std::string, std::string>{{"qdisc", "htb"}, {"rail_rate", "400Mbit"}}));
  EXPECT_EQ(environment.tcp.at("tcp_rmem"), "1 2 3");
  EXPECT_EQ(environment.tcp.at("tcp_congestion_control"), "its own");
  EXPECT_THAT(environment.congestion_control,
              AnyOf("reno in slow start, then cubic", "reno in slow start, then reno"))
      << "what the rails use";
}

TEST(EnvironmentTest, ReadsTheModelOfTheProcessor) {
  EXPECT_EQ(cpuModel("processor\t: 0\nmodel name\t: Example CPU @ 2 GHz\nmodel name\t: other\n",
                     "x86_64"),
            "Example CPU @ 2 GHz");
  EXPECT_EQ(cpuModel("processor\t: 0\nBogoMIPS\t: 50\n", "aarch64"), "aarch64");
  EXPECT_EQ(cpuModel("model name", "riscv64"), "riscv64");
}

TEST(EnvironmentTest, LibrariesAreTheSharedObjectsThatAreMapped) {
  EXPECT_THAT(loadedLibraries("1-2 r--p 0 fe:01 1   /usr/lib/libz.so.1.2\n"
                              "2-3 r-xp 0 fe:01 1   /usr/lib/libz.so.1.2\n"
                              "3-4 r-xp 0 fe:01 2   /opt/a folder/liba.so\n"
                              "4-5 rw-p 0 00:00 0   [heap]\n"
                              "5-6 r--p 0 fe:01 3   /usr/bin/program\n"
                              "6-7 r--p 0 fe:01 4   /etc/ld.so.d/note.txt\n"
                              "7-8 r--p 0 fe:01 5   /usr/lib/locale/locale-archive"),
              ElementsAre("/opt/a folder/liba.so", "/usr/lib/libz.so.1.2"));
}

}  // namespace
}  // namespace faultline::run
