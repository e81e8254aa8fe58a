#include "harness/nccl_bench/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace faultline::nccl_bench {
namespace {

using schedule::Collective;
using testing::ElementsAre;
using testing::HasSubstr;

std::map<std::string, std::string> environment;

const char* lookUp(const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.c_str();
}

Result<Options> read(std::vector<const char*> arguments,
                     std::map<std::string, std::string> variables = {}) {
  environment = std::move(variables);
  arguments.insert(arguments.begin(), "nccl_bench");
  return readOptions(static_cast<int>(arguments.size()), arguments.data(), lookUp);
}

TEST(Options, SizesAreThoseOfNcclTests) {
  const auto options = read({"-b", "8K", "-e", "64M", "-f", "16"});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_THAT(options->sweep.sizes, ElementsAre(8 << 10, 128 << 10, 2 << 20, 32 << 20));
  EXPECT_THAT(read({"-b", "3"})->sweep.sizes, ElementsAre(3));
  EXPECT_THAT(read({"-b", "1G"})->sweep.sizes, ElementsAre(1 << 30));
  EXPECT_THAT(read({"-b", "64KiB"})->sweep.sizes, ElementsAre(64 << 10));
  for (const char* const bad : {"", "K", "-8", "8Q", "0", "8.5M", "99999999999999G"}) {
    EXPECT_EQ(read({"-b", bad}).status().code(), Code::kInvalidArgument) << bad;
  }
  EXPECT_THAT(read({"-b", "8M", "-e", "8K"}).status().message(), HasSubstr("less than"));
}

TEST(Options, CollectivesAreThoseThatItCalls) {
  EXPECT_THAT(
      read({"--collective", "all_gather,reduce_scatter,all_to_all,send_recv"})->sweep.operations,
      ElementsAre(Collective::kAllGather, Collective::kReduceScatter, Collective::kAllToAll,
                  Collective::kSendRecv));
  EXPECT_THAT(read({"--collective", "broadcast"}).status().message(), HasSubstr("no such"));
  EXPECT_THAT(read({"--collective", "all_redce"}).status().message(), HasSubstr("all_reduce"));
  EXPECT_EQ(read({"-d", "f99"}).status().code(), Code::kInvalidArgument);
}

TEST(Options, TheEnvironmentSaysWhoItIs) {
  const auto options = read({}, {{"RANK", "2"},
                                 {"WORLD_SIZE", "4"},
                                 {"LOCAL_RANK", "1"},
                                 {"MASTER_ADDR", "10.0.0.1"},
                                 {"MASTER_PORT", "1234"},
                                 {"FAULTLINE_ADDRESS", "10.0.0.3"},
                                 {"FAULTLINE_PROGRESS", "/p"}});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->rank, 2);
  EXPECT_EQ(options->ranks, 4);
  EXPECT_EQ(options->gpu, 1);
  EXPECT_EQ(options->rootAddress, "10.0.0.1");
  EXPECT_EQ(options->address, "10.0.0.3");
  EXPECT_EQ(options->port, 1234);
  EXPECT_EQ(options->progressFile, "/p");
  EXPECT_EQ(read({"--gpu", "3"}, {{"LOCAL_RANK", "1"}})->gpu, 3);
  EXPECT_THAT(read({}, {{"RANK", "4"}, {"WORLD_SIZE", "4"}}).status().message(),
              HasSubstr("RANK=4: it must be a number from 0 to 3"));
  EXPECT_EQ(read({}, {{"WORLD_SIZE", "4x"}}).status().code(), Code::kInvalidArgument);
}

TEST(Options, RebuildsAsTheHarnessAsks) {
  const std::map<std::string, std::string> asked{{"FAULTLINE_NCCL_RECOVERY", "abort_reinit"},
                                                 {"FAULTLINE_NCCL_WAIT_MS", "5000"},
                                                 {"FAULTLINE_NCCL_RECOVERY_FILE", "/r"}};
  const auto options = read({"--each"}, asked);
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->recovery, Recovery::kAbortReinit);
  EXPECT_EQ(options->wait, 5s);
  EXPECT_EQ(options->recoveryFile, "/r");
  EXPECT_THAT(read({}, asked).status().message(), HasSubstr("--each"));
  EXPECT_EQ(read({}, {{"FAULTLINE_NCCL_RECOVERY", "none"}})->recovery, Recovery::kNone);
  EXPECT_EQ(read({}, {{"FAULTLINE_NCCL_RECOVERY", "grow"}}).status().code(), Code::kUnsupported);
}

TEST(Options, ShrinksWhereItKnowsThePorts) {
  std::map<std::string, std::string> asked{{"FAULTLINE_NCCL_RECOVERY", "shrink"},
                                           {"FAULTLINE_INTERFACES", "eth1,eth2"}};
  const auto options = read({"--each"}, asked);
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->recovery, Recovery::kShrink);
  EXPECT_EQ(options->interfaces, (std::vector<std::string>{"eth1", "eth2"}));
  asked.erase("FAULTLINE_INTERFACES");
  EXPECT_THAT(read({"--each"}, asked).status().message(), HasSubstr("FAULTLINE_INTERFACES"));
}

TEST(Options, DataThatCannotBeCheckedAreRefused) {
  const std::map<std::string, std::string> many{{"WORLD_SIZE", "64"}};
  EXPECT_THAT(read({"-d", "bf16"}, many).status().message(), HasSubstr("exact for up to 32"));
  EXPECT_TRUE(read({"-d", "bf16", "-c", "0"}, many).ok());
}

TEST(Options, HelpIsNoMistake) {
  const auto help = read({"--help"});
  EXPECT_EQ(help.status().code(), Code::kAborted);
  EXPECT_THAT(help.status().message(), HasSubstr("--collective"));
}

}  // namespace
}  // namespace faultline::nccl_bench
