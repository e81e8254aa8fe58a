#include "harness/control/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <filesystem>

#include "base/version.h"
#include "tests/support/run_program.h"

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
  EXPECT_EQ(environment.gpu.has_value(), std::filesystem::exists("/proc/driver/nvidia/gpus"));
  EXPECT_EQ(environment.nccl, std::nullopt) << "only programs say that";
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

TEST(EnvironmentTest, SaysWhichGpusThereAre) {
  const std::string h200 =
      "Model: \t\t NVIDIA H200\nIRQ:   \t\t 120\nGPU UUID: \t GPU-00000000\n"
      "Video BIOS: \t ??.??.??.??.??\nBus Type: \t PCIe\n";
  const std::string open =
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  "
      "(builder@host)  Mon Jan 1 00:00:00 UTC 2026\nGCC version:  gcc version 12.2.0\n";
  EXPECT_EQ(gpuModels(std::vector{h200, h200, h200, h200}, open),
            "4 x NVIDIA H200, driver 580.159.04");
  EXPECT_EQ(gpuModels(std::vector<std::string>{h200, "Model: \t\t Tesla T4\n", h200},
                      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun 6\n"),
            "2 x NVIDIA H200, 1 x Tesla T4, driver 535.54.03");
  EXPECT_EQ(gpuModels(std::vector<std::string>{""}, ""), "1 x unknown");
  EXPECT_EQ(gpuModels(std::vector{h200}, "GCC version:  gcc version 12.2.0\n"), "1 x NVIDIA H200");
  EXPECT_EQ(gpuModels({}, open), std::nullopt);
}

TEST(EnvironmentTest, TheVersionOfNcclIsWhatProgramsSay) {
  EXPECT_THAT(ncclVersionsTold("NCCL version 2.28.3+cuda12.9\n"
                               "host:7:7 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n"
                               "# validation: 1 NCCL version 2.28.3\n"),
              ElementsAre("2.28.3", "2.28.9"));
  EXPECT_THAT(ncclVersionsTold("# PyTorch 2.11 NCCL version 2.27.7, 4 ranks on 4 GPU(s)\n"),
              ElementsAre("2.27.7"));
  EXPECT_THAT(ncclVersionsTold("ncclCommShrink came with NCCL 2.27.3\nNCCL version unknown\n"
                               "NCCL version "),
              ElementsAre());
}

TEST(EnvironmentTest, TheVersionOfNcclIsLookedForInWhatProcessesPrinted) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "plugin-0" / "rank0");
  folder.write("plugin-0/rank0/stdout.txt", "# NCCL version 2.28.3\n");
  RecordedRun silent;
  silent.run.processes.push_back({.output = "plugin-0/rank1"});
  RecordedRun telling;
  telling.run.processes.push_back({.output = "plugin-0/rank0"});
  EXPECT_EQ(ncclVersionOf(std::vector{silent, telling}, folder.path()), "2.28.3");
  EXPECT_EQ(ncclVersionOf(std::vector{silent}, folder.path()), std::nullopt);
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
