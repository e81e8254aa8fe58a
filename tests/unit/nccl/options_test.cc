#include "resilient_ccl/nccl/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

namespace faultline::nccl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Options> read(const std::map<std::string, std::string>& environment) {
  return Options::read([&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(NcclOptionsTest, NothingSetGivesTheDefaults) {
  const auto options = read({});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_TRUE(options->nics.empty());
  EXPECT_EQ(options->policy, channel::Policy::kPull);
  EXPECT_EQ(options->chunkBytes, 64 << 10);
  EXPECT_EQ(options->giveUp, 10s);
  EXPECT_EQ(options->ioThreads, Options::kAutomatic);
  EXPECT_TRUE(options->counters.empty());
}

TEST(NcclOptionsTest, ThreadsAreAQuarterOfTheProcessorsAndTwoForEachRailAtMost) {
  EXPECT_EQ(automaticIoThreads(1, 8), 0);
  EXPECT_EQ(automaticIoThreads(3, 2), 0);
  EXPECT_EQ(automaticIoThreads(4, 2), 1);
  EXPECT_EQ(automaticIoThreads(16, 1), 2);
  EXPECT_EQ(automaticIoThreads(16, 4), 4);
  EXPECT_EQ(automaticIoThreads(256, 8), 16);
  EXPECT_EQ(automaticIoThreads(256, 32), 16);
  EXPECT_GE(usableProcessors(), 1);
}

TEST(NcclOptionsTest, EveryVariableIsRead) {
  const auto options = read({{"FAULTLINE_NICS", "ib0,ib1"},
                             {"FAULTLINE_NET_STRATEGY", "hot_repair"},
                             {"FAULTLINE_MANAGEMENT", "eth0"},
                             {"FAULTLINE_GIVE_UP", "3s"},
                             {"FAULTLINE_RAIL_GRACE", "250ms"},
                             {"FAULTLINE_CHUNK", "128KiB"},
                             {"FAULTLINE_SMALL", "4KiB"},
                             {"FAULTLINE_HOLD_OFF", "10ms"},
                             {"FAULTLINE_IO_THREADS", "2"},
                             {"FAULTLINE_COUNTERS", "/tmp/c.json"},
                             {"FAULTLINE_TRACE", "/tmp/t.json"},
                             {"NCCL_SOCKET_IFNAME", "ib"},
                             {"NCCL_OOB_NET_IFNAME", "=eth0"}});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_THAT(options->nics, ElementsAre("ib0", "ib1"));
  EXPECT_EQ(options->policy, channel::Policy::kPinned);
  EXPECT_EQ(options->management, "eth0");
  EXPECT_EQ(options->giveUp, 3s);
  EXPECT_EQ(options->railGrace, 250ms);
  EXPECT_EQ(options->chunkBytes, 128 << 10);
  EXPECT_EQ(options->smallMessage, 4 << 10);
  EXPECT_EQ(options->holdOff, 10ms);
  EXPECT_EQ(options->ioThreads, 2);
  EXPECT_EQ(options->counters, "/tmp/c.json");
  EXPECT_EQ(options->trace, "/tmp/t.json");
  EXPECT_EQ(options->socketInterfaces, "ib");
  EXPECT_EQ(options->bootstrapInterfaces, "=eth0");
  // What the log says can be set again as it is.
  EXPECT_EQ(options->describe(),
            "FAULTLINE_NICS=ib0,ib1 FAULTLINE_NET_STRATEGY=hot_repair FAULTLINE_MANAGEMENT=eth0 "
            "FAULTLINE_GIVE_UP=3s FAULTLINE_RAIL_GRACE=250ms FAULTLINE_CHUNK=128KiB "
            "FAULTLINE_SMALL=4KiB FAULTLINE_HOLD_OFF=10ms FAULTLINE_IO_THREADS=2 "
            "FAULTLINE_COUNTERS=/tmp/c.json FAULTLINE_TRACE=/tmp/t.json");
}

TEST(NcclOptionsTest, AWrongValueNamesTheVariableAndWhatIsAllowed) {
  const auto strategy = read({{"FAULTLINE_NET_STRATEGY", "ballance"}});
  ASSERT_FALSE(strategy.ok());
  EXPECT_THAT(strategy.status().message(), HasSubstr("FAULTLINE_NET_STRATEGY"));
  EXPECT_THAT(strategy.status().message(), HasSubstr("balance"));
  const auto threads = read({{"FAULTLINE_IO_THREADS", "99"}});
  ASSERT_FALSE(threads.ok());
  EXPECT_THAT(threads.status().message(), HasSubstr("16"));
  EXPECT_FALSE(read({{"FAULTLINE_GIVE_UP", "soon"}}).ok());
  EXPECT_FALSE(read({{"FAULTLINE_CHUNK", "1B"}}).ok());
}

TEST(NcclOptionsTest, TheDocumentationHasEveryVariableAsItIs) {
  std::ifstream file(std::string(FAULTLINE_SOURCE_DIR) + "/docs/nccl.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const ParameterSpec& spec : optionSpecs()) {
    EXPECT_THAT(text.str(), HasSubstr("| `FAULTLINE_" + std::string(spec.name) + "` | " +
                                      std::string(spec.defaultText) + " | " +
                                      std::string(spec.meaning) + " |"));
  }
}

}  // namespace
}  // namespace faultline::nccl
