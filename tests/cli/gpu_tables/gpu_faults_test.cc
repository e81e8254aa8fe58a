#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/run_program.h"

// Faults of scenarios/gpu: where they come from, and that they strike what they are to strike.
namespace faultline {
namespace {

using ::testing::HasSubstr;
using testing::Ran;
using testing::runProgram;

/// A flow list with a fault on each line; a scenario has them in a block list.
std::vector<std::string> drawnFaults(const char* seed, std::vector<std::string> options = {}) {
  options.insert(options.begin(),
                 {"python3", FAULTLINE_SOURCE_DIR "/ci/gpu/draw_faults.py", "--seed", seed});
  const Ran ran = runProgram("/usr/bin/env", options);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  std::vector<std::string> faults;
  std::istringstream lines(ran.out);
  for (std::string text; std::getline(lines, text);) {
    faults.push_back(text.substr(1, text.rfind('}')));
  }
  return faults;
}

/// As `drawnFaults` has them, one on each line of the scenario.
std::vector<std::string> faultsOf(const char* scenario) {
  std::ifstream file(std::string(FAULTLINE_SOURCE_DIR "/scenarios/gpu/") + scenario);
  std::vector<std::string> faults;
  for (std::string text; std::getline(file, text);) {
    if (text.starts_with("  - {kind: ")) faults.push_back(text.substr(4));
  }
  return faults;
}

TEST(GpuFaults, FaultsOfScenariosFollowFromTheirSeed) {
  const auto training = drawnFaults("7");
  EXPECT_EQ(training.size(), 16u);
  EXPECT_EQ(faultsOf("ddp.yaml"), training);
  const auto calls = drawnFaults(
      "9", {"--in-turn", "port_down,blackhole,connection_reset", "--faults", "9", "--every", "50"});
  EXPECT_EQ(calls.size(), 9u);
  EXPECT_EQ(faultsOf("protocols.yaml"), calls);
  EXPECT_NE(drawnFaults("8"), training);
}

// Of a ring, with 7 calls of 0.24 s from fault to fault: 13 s.
TEST(GpuFaults, FaultsInTurnSpareALinkForEightOfTheirKind) {
  constexpr int kNodes = 4;
  const std::regex where(R"(node: (\d), rail: (\d)\}, during: \{iteration: (\d+), progress: )");
  for (const std::string kind : {"port_down", "blackhole", "connection_reset"}) {
    SCOPED_TRACE(kind);
    const auto drawn = drawnFaults("7", {"--in-turn", kind, "--faults", "30", "--rails", "4"});
    ASSERT_EQ(drawn.size(), 30u);
    std::map<std::pair<int, int>, int> failed;  // link from that node on of that rail -> step
    for (const std::string& fault : drawn) {
      std::smatch found;
      ASSERT_TRUE(std::regex_search(fault, found, where)) << fault;
      const bool all = kind == "connection_reset";  // one is the default
      EXPECT_TRUE(fault.starts_with("{kind: " + kind + (all ? ", connections: all, " : ", target")))
          << fault;
      const int node = std::stoi(found[1]), rail = std::stoi(found[2]), step = std::stoi(found[3]);
      for (const int from : {node, (node + kNodes - 1) % kNodes}) {
        const auto before = failed.find({from, rail});
        if (before != failed.end()) {
          EXPECT_GE(step - before->second, 56) << fault;
        }
        failed[{from, rail}] = step;
      }
    }
    EXPECT_EQ(failed.size(), 16u) << "each link of each rail";
  }
}

TEST(GpuFaults, WhatCannotBeDrawnIsSaid) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--in-turn", "meteor"},
                                                {"--in-turn", "port_down", "--nodes", "3"},
                                                {"--in-turn", "port_down", "--steps", "9"},
                                                {"--every", "3"},
                                                {"--steps", "16"}}) {
    std::vector<std::string> arguments{"python3", FAULTLINE_SOURCE_DIR "/ci/gpu/draw_faults.py",
                                       "--seed", "7"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    const Ran ran = runProgram("/usr/bin/env", arguments);
    EXPECT_EQ(ran.exit, 2) << ::testing::PrintToString(wrong);
    EXPECT_THAT(ran.err, HasSubstr("error: "));
  }
}

/// (node, rail) of each fault of a scenario.
std::vector<std::pair<int, int>> struckNics(const std::string& scenario) {
  std::ifstream file(FAULTLINE_SOURCE_DIR "/scenarios/gpu/" + scenario);
  std::vector<std::pair<int, int>> nics;
  const std::regex target(R"(target: \{node: (\d), rail: (\d)\})");
  for (std::string text; std::getline(file, text);) {
    std::smatch found;
    if (std::regex_search(text, found, target)) {
      nics.emplace_back(std::stoi(found[1]), std::stoi(found[2]));
    }
  }
  return nics;
}

// A link that fails again within 10 s is held off longer, and then calls are slow for another
// reason.
TEST(GpuFaults, NoLinkOfTheRingFailsAgainBeforeTheThirdFault) {
  constexpr int kNodes = 4;
  for (const char* const name :
       {"pause-port-down.yaml", "pause-connection-reset.yaml", "pause-blackhole.yaml"}) {
    SCOPED_TRACE(name);
    const auto nics = struckNics(name);
    ASSERT_EQ(nics.size(), 30u);
    if (std::string_view(name) == "pause-connection-reset.yaml") {
      EXPECT_THAT(faultsOf(name), ::testing::Each(HasSubstr("connections: all, ")));
    }
    for (std::size_t at = 1; at < nics.size(); ++at) {
      for (std::size_t back = 1; back <= std::min<std::size_t>(at, 2); ++back) {
        const auto& [node, rail] = nics[at];
        const auto& [before, itsRail] = nics[at - back];
        const bool shareALink = rail == itsRail && (node - before + kNodes) % kNodes != 2;
        EXPECT_FALSE(shareALink) << "fault " << at << " and " << back << " before it";
      }
    }
  }
}

}  // namespace
}  // namespace faultline
