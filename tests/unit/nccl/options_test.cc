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

TEST(NcclOptionsTest, AListWithBlanksIsAList) {
  for (const char* list : {"eth0, eth1", " eth0 ,eth1 ", "eth0 eth1", "eth0\teth1\n"}) {
    EXPECT_THAT(read({{"FAULTLINE_NICS", list}})->nics, ElementsAre("eth0", "eth1")) << list;
    EXPECT_EQ(read({{"NCCL_SOCKET_IFNAME", list}})->socketInterfaces, "eth0,eth1") << list;
  }
  EXPECT_EQ(read({{"NCCL_SOCKET_IFNAME", "^= docker0, lo"}})->socketInterfaces, "^=docker0,lo");
  EXPECT_EQ(read({{"FAULTLINE_MANAGEMENT", " mgmt0 "}})->management, "mgmt0");
}

// NCCL asks for more than one character.
TEST(NcclOptionsTest, ASingleCharacterIsNoRule) {
  for (const char* one : {"^", "=", "e"}) {
    EXPECT_EQ(read({{"NCCL_SOCKET_IFNAME", one}})->socketInterfaces, "") << one;
  }
  EXPECT_EQ(read({{"NCCL_SOCKET_IFNAME", "^="}})->socketInterfaces, "^=");
}

TEST(NcclOptionsTest, ThreadsAreAQuarterOfTheProcessorsAndTwoForEachRailAtMost) {
  EXPECT_EQ(automaticIoThreads(1, 8), 0);
  EXPECT_EQ(automaticIoThreads(3, 2), 0);
  EXPECT_EQ(automaticIoThreads(4, 2), 1);
  EXPECT_EQ(automaticIoThreads(16, 1), 2);
  EXPECT_EQ(automaticIoThreads(16, 4), 4);
  EXPECT_EQ(automaticIoThreads(256, 8), 16);
  EXPECT_EQ(automaticIoThreads(256, 32), 16);
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
                             {"NCCL_SOCKET_IFNAME", "ib"}});
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
  // What the log says can be set again as it is.
  EXPECT_EQ(options->describe(),
            "FAULTLINE_NICS=ib0,ib1 FAULTLINE_NET_STRATEGY=hot_repair FAULTLINE_MANAGEMENT=eth0 "
            "FAULTLINE_GIVE_UP=3s FAULTLINE_RAIL_GRACE=250ms FAULTLINE_CHUNK=128KiB "
            "FAULTLINE_SMALL=4KiB FAULTLINE_HOLD_OFF=10ms FAULTLINE_IO_THREADS=2 "
            "FAULTLINE_KEY=none FAULTLINE_COUNTERS=/tmp/c.json FAULTLINE_TRACE=/tmp/t.json");
}

TEST(NcclOptionsTest, TheKeyIsMadeFromTheVariableAndNeverTold) {
  const std::string secret = "0123456789abcdef";
  const auto options = read({{"FAULTLINE_KEY", secret}});
  ASSERT_TRUE(options.ok()) << options.status().message();
  ASSERT_TRUE(options->jobKey);
  EXPECT_EQ(options->jobKey, read({{"FAULTLINE_KEY", secret}})->jobKey);
  EXPECT_NE(options->jobKey, read({{"FAULTLINE_KEY", secret + "0"}})->jobKey);
  EXPECT_THAT(options->describe(), HasSubstr("FAULTLINE_KEY=set "));
  EXPECT_THAT(options->describe(), ::testing::Not(HasSubstr(secret)));
  EXPECT_FALSE(read({})->jobKey);
  EXPECT_TRUE(read({{"FAULTLINE_KEY", std::string(1024, 'x')}}).ok());
  for (const std::string& wrong : {secret.substr(1), std::string(1025, 'x')}) {
    const auto refused = read({{"FAULTLINE_KEY", wrong}});
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.status().message(), HasSubstr("FAULTLINE_KEY has"));
    EXPECT_THAT(refused.status().message(), HasSubstr("16 to 1024"));
    EXPECT_THAT(refused.status().message(), ::testing::Not(HasSubstr(wrong)));
  }
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

TEST(NcclOptionsTest, AMessageNamesTheVariableOnce) {
  const auto said = [](const char* variable, const char* value) {
    return read({{variable, value}}).status().message();
  };
  EXPECT_EQ(said("FAULTLINE_GIVE_UP", "0s"),
            "FAULTLINE_GIVE_UP: '0s' is out of range: 100ms to 1h is possible");
  const std::string threads = "FAULTLINE_IO_THREADS: '";
  EXPECT_EQ(said("FAULTLINE_IO_THREADS", "x"),
            threads + "x' is not a whole number: -1 to 16 is possible");
  EXPECT_EQ(said("FAULTLINE_IO_THREADS", "99999999999999999999"),
            threads + "99999999999999999999' is out of range: -1 to 16 is possible");
  EXPECT_THAT(said("FAULTLINE_GIVE_UP", "soon"), ::testing::EndsWith(": 100ms to 1h is possible"));
  EXPECT_EQ(said("FAULTLINE_NET_STRATEGY", "fast"),
            "FAULTLINE_NET_STRATEGY: 'fast' is not one of balance, hot_repair");
}

TEST(NcclOptionsTest, EveryOptionRefusesWhatItCannotBe) {
  for (const ParameterSpec& spec : optionSpecs()) {
    if (spec.type == ParameterType::kText) continue;
    const std::string variable = "FAULTLINE_" + std::string(spec.name);
    const auto refused = read({{variable, "nonsense"}});
    ASSERT_FALSE(refused.ok()) << variable;
    EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(refused.status().message(), HasSubstr(variable));
    if (spec.bounded()) {
      // What is allowed is said, and what is said is allowed.
      for (const double bound : {spec.minimum, spec.maximum}) {
        const std::string text = formatBound(spec, bound);
        EXPECT_TRUE(read({{variable, text}}).ok()) << variable << "=" << text;
      }
      const auto far = read({{variable, formatBound(spec, spec.maximum * 2)}});
      ASSERT_FALSE(far.ok()) << variable;
      EXPECT_THAT(far.status().message(), HasSubstr(formatBound(spec, spec.maximum)));
    }
  }
}

TEST(NcclOptionsTest, ListsMayHaveBlanksAndMustHaveNames) {
  EXPECT_THAT(read({{"FAULTLINE_NICS", " ib0, ib1 ,"}})->nics, ElementsAre("ib0", "ib1"));
  const auto empty = read({{"FAULTLINE_NICS", " , "}});
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(empty.status().message(), HasSubstr("FAULTLINE_NICS"));
  EXPECT_TRUE(read({{"FAULTLINE_NICS", ""}})->nics.empty());
  EXPECT_TRUE(read({{"FAULTLINE_NICS", "none"}})->nics.empty());
}

TEST(NcclOptionsTest, AMisspeltVariableIsFoundAndOthersOfFaultlineAreLeftAlone) {
  const std::vector<std::string> variables{"PATH",
                                           "FAULTLINE_NICS",
                                           "FAULTLINE_NIC",
                                           "FAULTLINE_GIVEUP",
                                           "FAULTLINE_RANK",
                                           "FAULTLINE_NODE",
                                           "FAULTLINE_STRATEGY",
                                           "FAULTLINE_RAIL_1_ADDRESS_0",
                                           "FAULTLINE_SEED",
                                           "NICS"};
  EXPECT_THAT(likelyMistakes(variables),
              ElementsAre("FAULTLINE_NIC is no option of the plugin (did you mean FAULTLINE_NICS?)",
                          "FAULTLINE_GIVEUP is no option of the plugin (did you mean "
                          "FAULTLINE_GIVE_UP?)"));
  EXPECT_THAT(environmentNames(), ::testing::Contains("PATH"));
}

// A name that is like none of the options is told, too: whoever set it believes that it does
// something.
TEST(NcclOptionsTest, WhatNothingOfTheProjectReadsIsListedOnce) {
  const std::vector<std::string> variables{
      "FAULTLINE_RIALS",  "FAULTLINE_RAIL_1",  "FAULTLINE_VERBS_DIR", "FAULTLINE_",
      "FAULTLINE_RAIL_A", "FAULTLINE_ADDRESS", "MY_FAULTLINE_X",      "FAULTLINE_NCCL_RECOVERY"};
  const std::vector<std::string> mistakes = likelyMistakes(variables);
  ASSERT_EQ(mistakes.size(), 1U) << ::testing::PrintToString(mistakes);
  EXPECT_THAT(mistakes.front(),
              ::testing::StartsWith("without effect, since the plugin has no such options: "
                                    "FAULTLINE_RIALS, FAULTLINE_, FAULTLINE_RAIL_A; it has "
                                    "FAULTLINE_NICS, FAULTLINE_NET_STRATEGY, "));
  EXPECT_THAT(mistakes.front(), ::testing::EndsWith(", FAULTLINE_TRACE"));
}

TEST(NcclOptionsTest, LinksLeaveNcclSomethingOfTheBudget) {
  const auto budget = [](const char* giveUp) {
    return read({{"FAULTLINE_GIVE_UP", giveUp}})->linkBudget();
  };
  EXPECT_EQ(budget("100ms"), 80ms);
  EXPECT_EQ(budget("1s"), 800ms);
  EXPECT_EQ(budget("10s"), 8s);
  EXPECT_EQ(budget("1h"), 1h - 2s);
}

TEST(NcclOptionsTest, TheDocumentationHasEveryVariableAsItIsAndNoOther) {
  std::ifstream file(std::string(FAULTLINE_SOURCE_DIR) + "/docs/nccl.md");
  std::stringstream text;
  text << file.rdbuf();
  std::size_t rows = 0;
  for (std::size_t at = text.str().find("## Options");
       (at = text.str().find("\n| `FAULTLINE_", at)) != std::string::npos; ++at) {
    ++rows;
  }
  EXPECT_EQ(rows, optionSpecs().size());
  for (const ParameterSpec& spec : optionSpecs()) {
    const std::string range = spec.bounded() ? " " + formatBound(spec, spec.minimum) + " to " +
                                                   formatBound(spec, spec.maximum) + "."
                                             : "";
    EXPECT_THAT(text.str(), HasSubstr("| `FAULTLINE_" + std::string(spec.name) + "` | " +
                                      std::string(spec.defaultText) + " | " +
                                      std::string(spec.meaning) + range + " |"));
  }
}

}  // namespace
}  // namespace faultline::nccl
